"""The answer of an experiment: its best federated method beside the strongest of every other kind.

The federated method is chosen by its score, so its own number is a little too good; Holm's correction
counts at least all the federated methods that it was chosen from, except where the config's reference is
federated (`page_tests`). What it is compared with is the strongest of
its kind, so a claim of a gain holds against all of them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import institution_scope
from brainfed.reporting.intervals import SIGNIFICANT, Interval, best
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.variants import ShownVariant

METRIC = "auc"
POOLED, ALONE, NO_IMAGING, REFERENCE, LOCAL = "pooled data", "alone", "no imaging", "reference", "local"


@dataclass(frozen=True)
class Comparison:
    """The chosen method minus another one, paired by run.

    Attributes:
        role: what the other one stands for: `POOLED`, `ALONE`, `NO_IMAGING`; `REFERENCE` and `LOCAL` are the
            config's own choices where they are none of these.
        other: the variant that it is compared with.
        score: that variant's own mean.
        difference: mean difference with its corrected interval.
        p: corrected p, Holm-adjusted as everywhere on the page; NaN from too few runs.
    """

    role: str
    other: ShownVariant
    score: Interval
    difference: Interval
    p: float

    @property
    def tested(self) -> bool:
        """Whether there are enough runs for a test."""
        return bool(np.isfinite(self.p))

    @property
    def significant(self) -> bool:
        """Whether the difference holds after both corrections."""
        return self.tested and self.p < SIGNIFICANT


@dataclass(frozen=True)
class Answer:
    """What the first screen says.

    Attributes:
        chosen: the federated variant with the highest mean AUC; None where none ran.
        score: its mean.
        candidates: how many federated variants it was chosen from.
        comparisons: with the strongest of every other kind, then with the config's own choices.
        unseen: whether every institution is tested by models that never saw it.
    """

    chosen: ShownVariant | None
    score: Interval | None
    candidates: int
    comparisons: tuple[Comparison, ...]
    unseen: bool

    def against(self, role: str) -> Comparison | None:
        """The comparison with what stands for `role`."""
        return next((comparison for comparison in self.comparisons if comparison.role == role), None)


def find_answer(tests: PageTests, local: str) -> Answer:
    """Choose and compare.

    Args:
        tests: the runs and variants of the experiment, and its reference.
        local: the variant that the gain is over.
    """
    runs, variants = tests.scored.runs, tests.variants
    federated = [variant.name for variant in variants if variant.family == "federated"]
    name = best(runs, federated, METRIC)
    unseen = institutions_unseen(runs)
    if name is None:
        return Answer(None, None, len(federated), (), unseen)
    imaging = [variant for variant in variants if variant.family != "floor"]
    others = {
        POOLED: best(runs, [variant.name for variant in imaging if variant.pools], METRIC),
        ALONE: best(runs, [variant.name for variant in imaging if variant.trains_alone], METRIC),
        NO_IMAGING: best(runs, [variant.name for variant in variants if variant.family == "floor"], METRIC),
        REFERENCE: best(runs, [tests.reference], METRIC),
        LOCAL: best(runs, [local], METRIC),
    }
    shown = {variant.name: variant for variant in variants}
    compared = {name}
    comparisons = []
    for role, other in others.items():
        if other in shown and other not in compared:
            compared.add(other)
            difference, p = tests.differences(other, federated, METRIC)[name]
            score = tests.scored.interval(other, METRIC)
            comparisons.append(Comparison(role, shown[other], score, difference, p))
    return Answer(shown[name], tests.scored.interval(name, METRIC), len(federated), tuple(comparisons), unseen)


def institutions_unseen(runs: pd.DataFrame) -> bool:
    """Whether every institution is tested in one fold alone and no fold tests two: leave one site out."""
    prefix = institution_scope("")
    tested = runs.loc[runs["scope"].str.startswith(prefix), ["repeat", "fold", "scope"]].drop_duplicates()
    folds_of_one = tested.groupby(["repeat", "scope"])["fold"].size()
    ones_of_fold = tested.groupby(["repeat", "fold"])["scope"].size()
    return len(tested) > 1 and bool((folds_of_one == 1).all() and (ones_of_fold == 1).all())
