"""The answer in words: the best federated method beside pooled data and beside an institution on its own.

The sentences say no more than the tests: where an interval holds zero, they say that the difference is
not significant. The federated method is chosen by its score, so its own number is a little too good;
Holm's correction counts all the federated methods that it was chosen from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import compare
from brainfed.reporting.intervals import Interval, best, interval, values
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
        p: corrected p, Holm-adjusted over the federated variants.
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
    family = [other, *(variant.name for variant in shown.values() if variant.family == "federated")]
    tests = compare(runs[runs["variant"].isin(family)], other, METRIC, INSTITUTION, ratio)
    row = tests.set_index("variant").to_dict("index")[name]
    count = len(values(runs, name, METRIC))
    difference = Interval(float(row["difference"]), float(row["ci_low"]), float(row["ci_high"]), count)
    return Comparison(shown[other], interval(runs, other, METRIC, ratio), difference, float(row["p_holm"]))


def verdict(answer: Answer) -> str:
    """The answer in one line."""
    if answer.chosen is None:
        return "No federated method was run"
    alone = answer.strongest_local or answer.local
    said = []
    if alone is not None:
        said.append(
            _by_outcome(
                alone,
                "beats learning alone",
                "gains nothing significant over learning alone",
                "does worse than learning alone",
            )
        )
    if answer.reference is not None:
        other = "pooling all data" if answer.reference.other.pools else answer.reference.other.title
        said.append(
            _by_outcome(
                answer.reference,
                f"beats {other}",
                f"does not differ significantly from {other}",
                f"falls short of {other}",
            )
        )
    return f"Federation {' and '.join(said)}" if said else f"{answer.chosen.title} has nothing to be compared with"


def _by_outcome(comparison: Comparison, better: str, equal: str, worse: str) -> str:
    if not comparison.significant:
        return equal
    return better if comparison.difference.mean > 0 else worse


def sentences(answer: Answer) -> list[str]:
    """The numbers behind the verdict, in one to three sentences of plain text."""
    if answer.chosen is None or answer.score is None:
        return ["No federated method was run in this experiment, so it gives no answer about federation."]
    of = "best" if answer.candidates > 1 else "only"
    said = [f"The {of} federated method, {answer.chosen.title}, reaches an AUC of {answer.score}."]
    if answer.reference is not None:
        how = ", on everybody\u2019s pooled data," if answer.reference.other.pools else ""
        who = answer.reference.other.title + how
        said.append(f"{who} reaches {answer.reference.score.mean:.3f}: {_difference(answer.reference)}.")
    alone = answer.strongest_local or answer.local
    if alone is not None:
        said.append(
            f"An institution alone reaches {alone.score.mean:.3f} with {alone.other.title}: {_difference(alone)}."
            f"{_besides(answer)}"
        )
    return said


def _besides(answer: Answer) -> str:
    """The configured local variant, where another one is stronger."""
    if answer.strongest_local is None or answer.local is None:
        return ""
    return f" With {answer.local.other.title} it reaches {answer.local.score.mean:.3f}."


def _difference(comparison: Comparison) -> str:
    found = comparison.difference
    if not np.isfinite(comparison.p):
        return f"a difference of {signed(found.mean)}, from too few runs to be tested"
    spread = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
    p = f"p = {comparison.p:.3f}" if comparison.p >= 0.001 else "p < 0.001"
    if not comparison.significant:
        return f"the federated method\u2019s difference of {spread} is not significant ({p})"
    return f"the federated method {'gains' if found.mean > 0 else 'loses'} {spread} ({p})"


def signed(value: float) -> str:
    """Three decimals with a true minus sign."""
    return f"{value:+.3f}".replace("-", "\u2212")
