"""FedNI held against what the paper compares it with, and against the plain baseline.

FedGCN is FedNI without generated nodes, FedSage+ another generator, FedMLP the same network without a graph, and
central ridge regression a linear model on pooled data. Over which comparisons Holm's correction counts is said in
`page_tests`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brainfed.reporting.answer import METRIC
from brainfed.reporting.intervals import SIGNIFICANT, Interval, best, interval, signed, values
from brainfed.reporting.page_tests import BASELINES, FEDNI, PageTests
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class BaselineComparison:
    """FedNI minus one baseline, paired by run.

    Attributes:
        variant: the baseline.
        score: its mean AUC.
        difference: mean difference with its corrected interval.
        p: corrected p, Holm-adjusted as everywhere on the page; NaN from too few runs.
    """

    variant: ShownVariant
    score: Interval
    difference: Interval
    p: float

    @property
    def tested(self) -> bool:
        """Whether there are enough runs for a test."""
        return bool(np.isfinite(self.p))

    @property
    def outcome(self) -> int:
        """1: FedNI is significantly better, -1: worse, 0: neither, or not tested."""
        if not self.tested or self.p >= SIGNIFICANT:
            return 0
        return 1 if self.difference.mean > 0 else -1


@dataclass(frozen=True)
class FedNIResult:
    """FedNI beside its baselines.

    Attributes:
        fedni: FedNI.
        score: its mean AUC.
        baselines: in the order of `BASELINES`; at least one.
        leader: the variant with the highest mean AUC of the whole experiment.
        leader_score: that mean.
        counted: over which comparisons p is Holm-corrected; empty where there is one alone.
    """

    fedni: ShownVariant
    score: Interval
    baselines: tuple[BaselineComparison, ...]
    leader: ShownVariant
    leader_score: Interval
    counted: str


def find_fedni(tests: PageTests) -> FedNIResult | None:
    """Compare FedNI with every baseline that is there; None without FedNI or without a baseline."""
    runs, ratio = tests.scored.runs, tests.scored.ratio
    shown = {variant.name: variant for variant in tests.variants if len(values(runs, variant.name, METRIC))}
    present = [name for name in BASELINES if name in shown]
    if FEDNI not in shown or not present:
        return None
    found = tests.differences(FEDNI, present, METRIC)
    leader = best(runs, list(shown), METRIC) or FEDNI
    return FedNIResult(
        shown[FEDNI],
        interval(runs, FEDNI, METRIC, ratio),
        tuple(
            BaselineComparison(shown[name], interval(runs, name, METRIC, ratio), found[name][0].negated, found[name][1])
            for name in present
        ),
        shown[leader],
        interval(runs, leader, METRIC, ratio),
        tests.counted(FEDNI, present, METRIC),
    )


def fedni_clause(result: FedNIResult) -> str:
    """`beats FedGCN, does not differ significantly from FedSage+ and loses to Ridge (central)`."""
    words = {1: "beats", 0: "does not differ significantly from", -1: "loses to"}
    said = []
    for outcome, verb in words.items():
        titles = [one.variant.title for one in result.baselines if one.outcome == outcome and one.tested]
        if titles:
            said.append(f"{verb} {listed(titles, 'or' if outcome == 0 else 'and')}")
    untested = [one.variant.title for one in result.baselines if not one.tested]
    if untested:
        said.append(f"has too few runs to be tested against {listed(untested, 'or')}")
    return listed(said, "and")


def fedni_verdict(result: FedNIResult) -> str:
    """Who leads, and whom FedNI beats: the first screen's one line."""
    own, leader = result.fedni.title, result.leader.title
    if result.leader == result.fedni:
        return f"{own} has the highest AUC; it {fedni_clause(result)}"
    return f"{leader} has the highest AUC; {own} {fedni_clause(result)}"


def fedni_sentence(result: FedNIResult) -> str:
    """The numbers behind the clause."""
    parts = []
    for one in result.baselines:
        found = one.difference
        if not one.tested:
            parts.append(f"{signed(found.mean)} against {one.variant.title} (not tested)")
            continue
        p = f"p\u00a0=\u00a0{one.p:.3f}" if one.p >= 0.001 else "p\u00a0<\u00a00.001"
        spread = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
        parts.append(f"{spread} against {one.variant.title} ({p})")
    tested = any(one.tested for one in result.baselines)
    counted = f"; p is Holm-corrected {result.counted}" if tested and result.counted else ""
    return f"{result.fedni.title} reaches an AUC of {result.score.in_words()}: {'; '.join(parts)}{counted}."


def listed(items: Sequence[str], word: str) -> str:
    """`a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
