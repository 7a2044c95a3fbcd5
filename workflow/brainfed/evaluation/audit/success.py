"""How well a statistic separates members from non-members: AUC, and true positives at few false ones; intervals."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.evaluation.audit.shadow_runs import Float64, IntArray, Mask

FALSE_POSITIVES = 0.01
"""Largest share of non-members that may be taken for members (Carlini et al. 2022)."""
REPLICATES, LEVEL, SEED = 1000, 0.95, 0
NUMBERS = 5_000_000
"""Numbers in memory together: weights of the pairs of several replicates."""


@dataclass(frozen=True)
class Success:
    """Success of an attack, pooled over its targets; NaN without members or without non-members.

    Attributes:
        auc: probability that a member has the larger statistic than a non-member; equal ones count half.
        tpr: share of the members above the lowest threshold that at most `FALSE_POSITIVES` of the non-members exceed.
        fpr: the share of the non-members that do.
        auc_low, auc_high, tpr_low, tpr_high: bootstrap interval over people, given the trained models.
        members, non_members: pairs of a subject and a target.
        runs: targets.
    """

    auc: float
    auc_low: float
    auc_high: float
    tpr: float
    tpr_low: float
    tpr_high: float
    fpr: float
    members: int
    non_members: int
    runs: int


def success(statistic: Float64, member: Mask, non_member: Mask, group: IntArray) -> Success:
    """Success of an attack on all targets with one threshold.

    Args:
        statistic: (R, F, n); a subject without one (NaN) does not count.
        member: (R, F, n) what the attack should find.
        non_member: (R, F, n) what it should not.
        group: (n,) who is drawn together.
    """
    counted = np.isfinite(statistic) & (member | non_member)
    inside, people = member[counted], np.broadcast_to(group, statistic.shape)[counted]
    runs = int(counted.any(axis=-1).sum())
    sizes = {"members": int(inside.sum()), "non_members": int((~inside).sum()), "runs": runs}
    if not sizes["members"] or not sizes["non_members"]:
        return Success(*np.full(7, np.nan).tolist(), **sizes)
    curve = _Curve.of(statistic[counted], inside, people)
    (auc,), (tpr,), (fpr,) = curve.read(np.ones((1, int(group.max()) + 1)))
    read = [curve.read(weights)[:2] for weights in _replicates(np.unique(people), len(group), len(people))]
    tail = (1 - LEVEL) / 2
    lows, highs = np.nanquantile(np.concatenate(read, axis=1), [tail, 1 - tail], axis=1)
    return Success(
        float(auc), float(lows[0]), float(highs[0]), float(tpr), float(lows[1]), float(highs[1]), float(fpr), **sizes
    )  # fmt: skip


def _replicates(groups: IntArray, size: int, pairs: int) -> Iterator[Float64]:
    """(b, size) how often each group is drawn in some replicates of so many pairs, until there are `REPLICATES`."""
    rng = np.random.default_rng(SEED)
    at_once = max(1, NUMBERS // pairs)
    for start in range(0, REPLICATES, at_once):
        drawn = np.zeros((min(at_once, REPLICATES - start), size))
        drawn[:, groups] = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=len(drawn))
        yield drawn


@dataclass(frozen=True)
class _Curve:
    """Pairs in descending order of the statistic.

    Attributes:
        inside: (N,) 1 for a member, else 0.
        people: (N,) group of each pair.
        last: position of the last pair of each distinct value.
    """

    inside: Float64
    people: IntArray
    last: NDArray[np.intp]

    @classmethod
    def of(cls, statistic: Float64, inside: Mask, people: IntArray) -> "_Curve":
        order = np.argsort(-statistic, kind="stable")
        ranked = statistic[order]
        return cls(
            inside[order].astype(np.float64), people[order], np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
        )

    def read(self, weights: Float64) -> Float64:
        """(3, b) AUC, true and false positives if every group counts as often as `weights` (b, groups) say."""
        own = weights[:, self.people]
        true, false = (self._rates(own * part) for part in (self.inside, 1 - self.inside))
        auc = (np.diff(false, axis=1) * (true[:, 1:] + true[:, :-1])).sum(axis=1) / 2
        few = (false <= FALSE_POSITIVES + 1e-12).sum(axis=1) - 1
        rows = np.arange(len(weights))
        found = np.stack([auc, true[rows, few], false[rows, few]])
        return np.where(np.isfinite(auc), found, np.nan)

    def _rates(self, weights: Float64) -> Float64:
        """(b, thresholds + 1) share of the weights above each threshold, from 0 to 1; NaN if there is no weight."""
        sums = np.cumsum(weights, axis=1)[:, self.last]
        total = sums[:, -1:]
        rates = np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0)
        return np.concatenate([np.zeros((len(rates), 1)), rates], axis=1)
