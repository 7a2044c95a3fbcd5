"""What is measured at one size, and which of its numbers grows along each axis."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace

PAPER_FEATURES = 7381
"""Connections of 122 regions."""

Changed = Mapping[str, int | str]
"""Number of a work -> another value."""


@dataclass(frozen=True)
class Work:
    """One cohort and one training of FedGCN on it.

    Attributes:
        subjects: n.
        institutions: M, of equal size.
        features: d.
        regions: R of the made-up series that the features are computed from; 0: the features are made up.
        volumes: length of a series.
        folds: so many of five folds are trained; subjects of the others always train.
        rounds: of the federation.
        local_epochs: epochs of a round.
        scope: of the population graph.
        protocol: `inductive` fits the graph to the training subjects of the first fold.
        threads: of every process.
    """

    subjects: int
    institutions: int = 5
    features: int = PAPER_FEATURES
    regions: int = 0
    volumes: int = 200
    folds: int = 1
    rounds: int = 1
    local_epochs: int = 2
    scope: str = "local"
    protocol: str = "transductive"
    threads: int = 1


@dataclass(frozen=True)
class Axis:
    """One number that grows while the others stay.

    Attributes:
        name: of the number.
        sizes: of the number.
        quick: the same for trying the script.
        grown: a size -> the work.
        steps: what is measured, in order.
        prepared: steps that run before, unmeasured.
    """

    name: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    grown: Callable[[int], Work]
    steps: tuple[str, ...]
    prepared: tuple[str, ...] = ()

    @property
    def grows(self) -> set[str]:
        """Names of the numbers that follow the size."""
        small, large = (asdict(self.grown(size)) for size in self.quick)
        return {name for name in small if small[name] != large[name]}

    def work(self, size: int, changed: Changed) -> Work:
        """The work at a size, with other numbers `changed`."""
        return replace(self.grown(size), **changed)


def of_regions(regions: int) -> Work:
    """Series of 200 subjects, from which connectivity is computed."""
    return Work(subjects=200, regions=regions, features=regions * (regions - 1) // 2)


AXES = {
    axis.name: axis
    for axis in (
        Axis(
            "subjects",
            (3125, 6250, 12_500, 25_000, 50_000),
            (100, 200),
            lambda subjects: Work(subjects=subjects, scope="global"),
            ("graph", "training"),
        ),
        Axis(
            "institutions",
            (62, 125, 250, 500, 1000),
            (5, 10),
            lambda institutions: Work(subjects=20 * institutions, institutions=institutions),
            ("graph", "training"),
        ),
        Axis(
            "regions",
            (62, 125, 250, 500, 1000),
            (10, 20),
            of_regions,
            ("connectivity", "graph", "training"),
        ),
        Axis(
            "rounds",
            (5, 10, 20, 40, 80),
            (2, 4),
            lambda rounds: Work(subjects=870, folds=5, rounds=rounds),
            ("training",),
            ("graph",),
        ),
    )
}
