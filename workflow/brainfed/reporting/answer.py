"""The answer in words: the best federated method beside pooled data and beside an institution on its own.

The sentences say no more than the tests: where an interval holds zero, they say that the data cannot
tell the two apart. The federated method is chosen by its score, so its own number is a little too good;
Holm's correction counts all the methods that it was chosen from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import compare
from brainfed.reporting.intervals import Interval, best, interval
from brainfed.reporting.variants import ShownVariant

METRIC = "auc"
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Comparison:
    """The chosen method minus another one, paired by run.

    Attributes:
        other: the variant that it is compared with.
        score: that variant's own mean.
        difference: mean difference with its corrected interval.
        p: corrected p, Holm-adjusted over the variants of the experiment.
    """

    other: ShownVariant
    score: Interval
    difference: Interval
    p: float

    @property
    def significant(self) -> bool:
        """Whether the difference holds after both corrections."""
        return bool(np.isfinite(self.p) and self.p < SIGNIFICANT)


@dataclass(frozen=True)
class Answer:
    """What the first screen says.

    Attributes:
        chosen: the federated variant with the highest mean AUC; None where none ran.
        score: its mean.
        candidates: how many federated variants it was chosen from.
        reference: comparison with the experiment's reference (usually ridge on everybody's data).
        local: comparison with the experiment's local variant.
        strongest_local: the best of all variants that train alone, where it is another one.
    """

    chosen: ShownVariant | None
    score: Interval | None
    candidates: int
    reference: Comparison | None
    local: Comparison | None
    strongest_local: Comparison | None


def find_answer(
    runs: pd.DataFrame, variants: Sequence[ShownVariant], reference: str, local: str, ratio: float
) -> Answer:
    """Choose and compare.

    Args:
        runs: variant, repeat, fold, scope, metric, value.
        variants: all variants of the experiment.
        reference: the variant that the tests compare with.
        local: the variant that trains every institution alone.
        ratio: n_test / n_train of a run.
    """
    shown = {variant.name: variant for variant in variants}
    federated = [variant.name for variant in variants if variant.family == "federated"]
    name = best(runs, federated, METRIC)
    if name is None:
        return Answer(None, None, len(federated), None, None, None)
    alone = best(runs, [variant.name for variant in variants if variant.trains_alone], METRIC)

    def versus(other: str | None) -> Comparison | None:
        return None if other is None or other == name else _compare(runs, shown, name, other, ratio)

    return Answer(
        shown[name],
        interval(runs, name, METRIC, ratio),
        len(federated),
        versus(reference if reference in shown else None),
        versus(local if local in shown else None),
        versus(alone if alone != local else None),
    )


def _compare(
    runs: pd.DataFrame, shown: dict[str, ShownVariant], name: str, other: str, ratio: float
) -> Comparison | None:
    if not ((runs["variant"] == other) & (runs["metric"] == METRIC) & runs["value"].notna()).any():
        return None
    tests = compare(runs, other, METRIC, INSTITUTION, ratio).set_index("variant")
    row = tests.loc[name]
    count = int(runs.loc[(runs["variant"] == name) & (runs["metric"] == METRIC) & (runs["scope"] == INSTITUTION)].shape[0])
    difference = Interval(float(row["difference"]), float(row["ci_low"]), float(row["ci_high"]), count)
    return Comparison(shown[other], interval(runs, other, METRIC, ratio), difference, float(row["p_holm"]))


def sentences(answer: Answer, institutions: int) -> list[str]:
    """The answer in two to four sentences of plain text."""
    if answer.chosen is None or answer.score is None:
        return ["No federated method was run in this experiment, so it gives no answer about federation."]
    of = f", the best of {answer.candidates} federated methods," if answer.candidates > 1 else ""
    said = [
        f"{answer.chosen.title}{of} reaches an AUC of {answer.score} "
        f"(mean over {institutions} institutions and {answer.score.runs} test folds, 95 % interval)."
    ]
    if answer.reference is not None:
        said.append(_beside(answer.reference, "on everybody's pooled data" if _pools(answer.reference.other) else ""))
    if answer.local is not None:
        said.append(_beside(answer.local, "trained by each institution alone"))
    if answer.strongest_local is not None:
        strongest = answer.strongest_local
        said.append(
            f"The strongest model that an institution can train alone is {strongest.other.title} "
            f"({strongest.score.mean:.3f}): {_verdict(strongest)}."
        )
    return said


def _pools(variant: ShownVariant) -> bool:
    return variant.settings.get("training") == "central" or variant.method == "centralgcn"


def _beside(comparison: Comparison, how: str) -> str:
    other, score = comparison.other.title, comparison.score.mean
    return f"{other}{f' {how}' if how else ''} reaches {score:.3f}: {_verdict(comparison)}."


def _verdict(comparison: Comparison) -> str:
    difference = comparison.difference
    if not np.isfinite(comparison.p):
        return f"a difference of {difference.mean:+.3f}, from too few runs to be tested"
    spread = f"{difference.mean:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]".replace("-", "\u2212")
    p = f"p = {comparison.p:.3f}" if comparison.p >= 0.001 else "p < 0.001"
    if not comparison.significant:
        return f"a difference of {spread} that is not significant ({p}); these data cannot tell the two apart"
    if difference.mean > 0:
        return f"federation gains {spread} ({p})"
    return f"federation falls short, a difference of {spread} ({p})"
