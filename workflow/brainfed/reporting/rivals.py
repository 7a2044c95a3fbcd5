"""FedNI held against what the paper compares it with, and against the plain baseline.

FedGCN is FedNI without generated nodes, FedSage+ another generator, FedMLP the same network without a graph, and
central ridge regression a linear model on pooled data. Holm's correction counts the comparisons that are made here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import compare
from brainfed.reporting.answer import METRIC, SIGNIFICANT
from brainfed.reporting.intervals import Interval, best, interval, signed, values
from brainfed.reporting.variants import ShownVariant

CHALLENGER = "fedni"
RIVALS = {
    "fedgcn": "the same without generated nodes",
    "fedsage-plus": "another generator",
    "fedmlp": "no graph at all",
    "ridge-central": "pooled data",
}
"""What FedNI is held against -> what each stands for."""


@dataclass(frozen=True)
class Rival:
    """FedNI minus one rival, paired by run.

    Attributes:
        variant: the rival.
        score: its mean AUC.
        difference: mean difference with its corrected interval.
        p: corrected p, Holm-adjusted over the rivals; NaN from too few runs.
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
class Contest:
    """FedNI among its rivals.

    Attributes:
        challenger: FedNI.
        score: its mean AUC.
        rivals: in the order of `RIVALS`; at least one.
        leader: the variant with the highest mean AUC of the whole experiment.
        leader_score: that mean.
    """

    challenger: ShownVariant
    score: Interval
    rivals: tuple[Rival, ...]
    leader: ShownVariant
    leader_score: Interval


def find_contest(runs: pd.DataFrame, variants: Sequence[ShownVariant], ratio: float) -> Contest | None:
    """Compare FedNI with every rival that is there; None without FedNI or without a rival.

    Args:
        runs: variant, repeat, fold, scope, metric, value.
        variants: all variants of the experiment.
        ratio: n_test / n_train of a run.
    """
    shown = {variant.name: variant for variant in variants if len(values(runs, variant.name, METRIC))}
    present = [name for name in RIVALS if name in shown]
    if CHALLENGER not in shown or not present:
        return None
    family = runs[runs["variant"].isin([CHALLENGER, *present])]
    tests = compare(family, CHALLENGER, METRIC, INSTITUTION, ratio).set_index("variant").to_dict("index")
    rivals = []
    for name in present:
        test = tests[name]
        score = interval(runs, name, METRIC, ratio)
        low, high = -float(test["ci_high"]), -float(test["ci_low"])
        difference = Interval(-float(test["difference"]), low, high, score.runs)
        rivals.append(Rival(shown[name], score, difference, float(test["p_holm"])))
    leader = best(runs, list(shown), METRIC) or CHALLENGER
    return Contest(
        shown[CHALLENGER],
        interval(runs, CHALLENGER, METRIC, ratio),
        tuple(rivals),
        shown[leader],
        interval(runs, leader, METRIC, ratio),
    )


def contest_clause(contest: Contest) -> str:
    """`beats FedGCN, does not differ significantly from FedSage+ and loses to Ridge (central)`."""
    words = {1: "beats", 0: "does not differ significantly from", -1: "loses to"}
    said = []
    for outcome, verb in words.items():
        titles = [rival.variant.title for rival in contest.rivals if rival.outcome == outcome and rival.tested]
        if titles:
            said.append(f"{verb} {listed(titles, 'or' if outcome == 0 else 'and')}")
    untested = [rival.variant.title for rival in contest.rivals if not rival.tested]
    if untested:
        said.append(f"has too few runs to be tested against {listed(untested, 'or')}")
    return listed(said, "and")


def contest_verdict(contest: Contest) -> str:
    """Who leads, and whom FedNI beats: the first screen's one line."""
    own, leader = contest.challenger.title, contest.leader.title
    if contest.leader == contest.challenger:
        return f"{own} has the highest AUC; it {contest_clause(contest)}"
    return f"{leader} has the highest AUC; {own} {contest_clause(contest)}"


def contest_sentence(contest: Contest) -> str:
    """The numbers behind the clause."""
    parts = []
    for rival in contest.rivals:
        found = rival.difference
        if not rival.tested:
            parts.append(f"{signed(found.mean)} against {rival.variant.title} (not tested)")
            continue
        p = f"p\u00a0=\u00a0{rival.p:.3f}" if rival.p >= 0.001 else "p\u00a0<\u00a00.001"
        spread = f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"
        parts.append(f"{spread} against {rival.variant.title} ({p})")
    counted = f"; p is Holm-corrected over these {len(parts)}" if len(parts) > 1 else ""
    return f"{contest.challenger.title} reaches an AUC of {contest.score.in_words()}: {'; '.join(parts)}{counted}."


def listed(items: Sequence[str], word: str) -> str:
    """`a, b and c`."""
    return f" {word} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
