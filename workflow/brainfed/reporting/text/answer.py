"""The answer of an experiment: its best federated method against the same model without federation and the best.

The federated method is chosen by its score, so its own number is slightly optimistic. It is compared with its own
twins (the same model alone and on pooled data) and with the strongest variant of every other kind. A claimed gain over
local training must hold against all local models.
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
        roles: roles of the other variant: `TWIN_ALONE`, `TWIN_POOLED`; the strongest `ALONE`, on `POOLED` data, with
            `NO_IMAGING`; the config's `REFERENCE` if it is none of these.
        other: the other variant.
        score: mean of the other variant.
        difference: mean difference with its corrected interval.
    """

    roles: tuple[str, ...]
    other: ShownVariant
    score: Interval
    difference: Interval


@dataclass(frozen=True)
class Answer:
    """Contents of the first screen.

    Attributes:
        chosen: the federated variant with the highest mean AUC; None if none ran, or if none has an AUC.
        score: its mean.
        candidates: number of federated variants, without controls and poisoned ones.
        comparisons: comparisons with its twins, the strongest of every other kind and the config's reference; each
            other variant once.
        unseen: whether every institution is tested by models that never saw it.
    """

    chosen: ShownVariant | None
    score: Interval | None
    candidates: int
    comparisons: tuple[Comparison, ...]
    unseen: bool

    def against(self, role: str) -> Comparison | None:
        """The comparison with the variant in `role`."""
        return next((comparison for comparison in self.comparisons if role in comparison.roles), None)


def find_answer(tests: PageTests) -> Answer:
    """Choose and compare: the runs, variants and reference of the experiment."""
    runs, variants = tests.scored.runs, tests.variants
    measures = [variant.name for variant in variants if variant.is_control or variant.is_poisoned]
    federated = [variant.name for variant in variants if variant.family == "federated" and variant.name not in measures]
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
