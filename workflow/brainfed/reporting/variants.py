"""How a variant is shown: its title, and one colour for each family of methods."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from brainfed.reporting.sweep_titles import without_sweep

FAMILY_COLOURS = {"floor": "#7d8590", "linear": "#0072b2", "graph": "#008f68", "federated": "#d55e00"}
FAMILY_TITLES = {
    "floor": "no imaging",
    "linear": "linear models",
    "graph": "graph networks, no federation",
    "federated": "federated",
}
PATIENT_LEVEL = "subjects"
"""Axis of a crossing that has one entry a patient."""


@dataclass(frozen=True)
class ShownVariant:
    """One row of the tables and figures.

    Attributes:
        name: as in the config.
        method: the method that it varies.
        method_title: the method's own title.
        family: `floor`, `linear`, `graph` or `federated`.
        settings: the method's resolved settings.
        costs: its `cost.json` of each repeat.
        timings: its `timing.json` of each repeat.
    """

    name: str
    method: str
    method_title: str
    family: str
    settings: dict[str, Any] = field(default_factory=dict)
    costs: tuple[str, ...] = ()
    timings: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`FedGCN (no noise)` for the variant `fedgcn-no-noise` of the method `fedgcn`, `FedGCN (k = 5)` in a sweep."""
        of_method = self.name == self.method or self.name.startswith(f"{self.method}-")
        given = self.name.removeprefix(self.method) if of_method else f"-{self.name}"
        rest, swept = without_sweep(given, self.settings)
        words = [rest.removeprefix("-").replace("-", " "), *swept] if of_method else swept
        title = self.method_title if of_method or not rest else rest.removeprefix("-")
        told = ", ".join(word for word in words if word)
        return f"{title} ({told})" if told else title

    @property
    def colour(self) -> str:
        """The colour of its family."""
        return FAMILY_COLOURS[self.family]

    @property
    def trains_alone(self) -> bool:
        """Whether every institution has a model of its own that nobody else touched."""
        return self.settings.get("training") == "local" or self.method == "localgcn"

    @property
    def pools(self) -> bool:
        """Whether it trains on the data of all institutions in one place."""
        return self.settings.get("training") == "central" or self.method == "centralgcn"

    @property
    def epochs_a_round(self) -> int:
        """Local epochs between two points of its curves; 0: it has no curves."""
        if "rounds" in self.settings:
            return int(self.settings.get("local_epochs", 1))
        return int(self.settings.get("curve_every", 0))


def by_family(variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants in the order of the families, inside a family in the order given."""
    order = list(FAMILY_COLOURS)
    return sorted(variants, key=lambda variant: order.index(variant.family))
