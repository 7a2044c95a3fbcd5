"""The answer of an experiment: its best federated method beside the same model without federation, and beside the best.

The federated method is chosen by its score, so its own number is a little too good. It is compared with its own twins
(the same model alone and on pooled data) and with the strongest of every other kind, so that a claim of a gain over
learning alone holds against all that an institution could do alone.
"""

from dataclasses import dataclass

from brainfed.evaluation.scores import institutions_unseen
from brainfed.reporting.intervals import Interval, best
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.variants import ShownVariant

METRIC = "auc"
TWIN_ALONE, TWIN_POOLED = "same model alone", "same model, pooled data"
ALONE, POOLED, NO_IMAGING, REFERENCE = "alone", "pooled data", "no imaging", "reference"
SIDES = {"alone": TWIN_ALONE, "pooled": TWIN_POOLED}
"""Side of a twin -> its role."""


@dataclass(frozen=True)
class Comparison:
    """The chosen method minus another one, paired by run.

    Attributes:
        roles: what the other one stands for: `TWIN_ALONE`, `TWIN_POOLED`; the strongest `ALONE`, on `POOLED` data, with
            `NO_IMAGING`; the config's `REFERENCE` where it is none of these.
        other: the variant that it is compared with.
        score: that variant's own mean.
        difference: mean difference with its corrected interval.
    """

    roles: tuple[str, ...]
    other: ShownVariant
    score: Interval
    difference: Interval


@dataclass(frozen=True)
class Answer:
    """What the first screen says.

    Attributes:
        chosen: the federated variant with the highest mean AUC; None where none ran.
        score: its mean.
        candidates: how many federated variants it was chosen from.
        comparisons: with its twins, with the strongest of every other kind, with the config's reference; each other
            variant once.
        unseen: whether every institution is tested by models that never saw it.
    """

    chosen: ShownVariant | None
    score: Interval | None
    candidates: int
    comparisons: tuple[Comparison, ...]
    unseen: bool

    def against(self, role: str) -> Comparison | None:
        """The comparison with what stands for `role`."""
        return next((comparison for comparison in self.comparisons if role in comparison.roles), None)


def find_answer(tests: PageTests) -> Answer:
    """Choose and compare: the runs, variants and reference of the experiment."""
    runs, variants = tests.scored.runs, tests.variants
    federated = [variant.name for variant in variants if variant.family == "federated" and not variant.is_control]
    name = best(runs, federated, METRIC)
    unseen = institutions_unseen(runs)
    if name is None:
        return Answer(None, None, len(federated), (), unseen)
    shown = {variant.name: variant for variant in variants}
    imaging = [variant for variant in variants if variant.family != "baseline"]
    others = {role: _twin(tests, shown[name], side) for side, role in SIDES.items()}
    others |= {
        ALONE: best(runs, [variant.name for variant in imaging if variant.trains_alone], METRIC),
        POOLED: best(runs, [variant.name for variant in imaging if variant.pools], METRIC),
        NO_IMAGING: best(runs, [variant.name for variant in variants if variant.family == "baseline"], METRIC),
        REFERENCE: best(runs, [tests.reference], METRIC),
    }
    roles: dict[str, tuple[str, ...]] = {}
    for role, other in others.items():
        if other in shown and other != name and not (role == REFERENCE and other in roles):
            roles[str(other)] = (*roles.get(str(other), ()), role)
    comparisons = tuple(
        Comparison(
            held, shown[other], tests.scored.interval(other, METRIC), tests.scored.difference(name, other, METRIC)
        )
        for other, held in roles.items()
    )
    return Answer(shown[name], tests.scored.interval(name, METRIC), len(federated), comparisons, unseen)


def _twin(tests: PageTests, variant: ShownVariant, side: str) -> str | None:
    """The twin of a variant that has a score."""
    return best(tests.scored.runs, [variant.twin(side).name], METRIC)
