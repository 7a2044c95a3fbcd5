"""FedNI against the methods of its paper, and against a linear baseline.

FedGCN is FedNI without generated nodes, FedSage+ another generator, FedMLP the same network without a graph, and
central ridge regression a linear model on pooled data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from brainfed.reporting.intervals import Interval, best, values
from brainfed.reporting.page_tests import BASELINES, FEDNI, PageTests
from brainfed.reporting.text.answer import METRIC
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class BaselineComparison:
    """FedNI minus one baseline, paired by run.

    Attributes:
        variant: the baseline.
        score: its mean AUC.
        difference: mean difference with its corrected interval.
    """

    variant: ShownVariant
    score: Interval
    difference: Interval


@dataclass(frozen=True)
class FedNIResult:
    """FedNI and its baselines.

    Attributes:
        fedni: FedNI.
        score: its mean AUC.
        baselines: in the order of `BASELINES`; at least one.
        leader: the variant with the highest mean AUC of the whole experiment.
        leader_score: that mean.
    """

    fedni: ShownVariant
    score: Interval
    baselines: tuple[BaselineComparison, ...]
    leader: ShownVariant
    leader_score: Interval


def find_fedni(tests: PageTests) -> FedNIResult | None:
    """Compare FedNI with every baseline of the experiment; None without FedNI or without a baseline."""
    scored = tests.scored
    shown = {variant.name: variant for variant in tests.variants if len(values(scored.runs, variant.name, METRIC))}
    present = [name for name in BASELINES if name in shown]
    if FEDNI not in shown or not present:
        return None
    methods = [name for name, variant in shown.items() if not variant.is_control and not variant.is_poisoned]
    leader = best(scored.runs, methods, METRIC) or FEDNI
    return FedNIResult(
        shown[FEDNI],
        scored.interval(FEDNI, METRIC),
        tuple(
            BaselineComparison(shown[name], scored.interval(name, METRIC), scored.difference(FEDNI, name, METRIC))
            for name in present
        ),
        shown[leader],
        scored.interval(leader, METRIC),
    )


def fedni_sentence(result: FedNIResult) -> str:
    """FedNI's own score, its difference from every baseline, and which method has the highest score."""
    parts = [f"{one.difference.as_difference()} from {one.variant.title}" for one in result.baselines]
    own = f"{result.fedni.title}, with an AUC of {result.score.in_words()}, differs by {listed(parts, 'and')}."
    if result.leader == result.fedni:
        return f"{own} It has the highest AUC of all methods."
    return f"{own} {result.leader.title} has the highest AUC of all methods, {result.leader_score.text}."


def listed(items: Sequence[str], word: str) -> str:
    """`a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
