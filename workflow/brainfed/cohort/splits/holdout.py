"""One test set: of every institution a share is tested, a share is held back, the rest trains (Xie et al. 2021)."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.cohort.splits.folds import UNTESTED
from brainfed.runtime.streams import Streams

TESTED = 0
"""The only test fold."""


def held_out(
    subjects: pd.DataFrame, institution: NDArray[np.object_], settings: SplitSettings, streams: Streams
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n,) fold of each subject, -1 where it trains; and (n,) whether it is kept: the others are held back.

    In every institution each class has its share of the tested and of those held back, rounded up or down; which way
    is drawn, so that a class with too few people for all parts is spread at random. Twins count once, with the
    diagnosis and the institution of the first labelled one. Subjects without a label are kept.

    Args:
        subjects: group (of twins), diagnosis (-1 without one).
        institution: (n,) names; each has two labelled people or more.
        settings: `tested` and `held_back`.
        streams: random streams of the repeat.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    people = subjects.assign(institution=institution)[labelled].drop_duplicates("group").sort_values("group")
    tested: set[str] = set()
    held_back: set[str] = set()
    for name, members in people.groupby("institution", sort=True):
        random = streams.numpy("holdout", str(name))
        order = _by_class(members["diagnosis"].to_numpy(np.int64), random)
        wanted, left = _sizes(len(order), settings)
        chosen = spread_evenly(len(order), wanted, random)
        others = order[~chosen]
        group = members["group"].to_numpy(dtype=object)
        tested |= set(group[order[chosen]])
        held_back |= set(group[others[spread_evenly(len(others), left, random)]])
    fold = np.where(labelled & subjects["group"].isin(tested).to_numpy(), TESTED, UNTESTED)
    return fold.astype(np.int64), ~subjects["group"].isin(held_back).to_numpy()


def spread_evenly(count: int, wanted: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """(count,) systematic sample of `wanted` places from a random start.

    Every place has the same probability, and any run of r places has r wanted / count of the sample, rounded up or
    down.
    """
    start = int(random.integers(count)) if count else 0
    steps = (np.arange(count + 1) * wanted + start) // max(count, 1)
    return np.asarray(np.diff(steps) > 0)


def _by_class(diagnosis: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """(n,) positions, one class after the other: classes in random order, and people in random order inside them."""
    rank = random.permutation(diagnosis.max() + 1)
    shuffled = random.permutation(len(diagnosis))
    return np.asarray(shuffled[np.argsort(rank[diagnosis[shuffled]], kind="stable")], dtype=np.int64)


def _sizes(people: int, settings: SplitSettings) -> tuple[int, int]:
    """Numbers of tested and held-back people, rounded; at least one is tested and one trains."""
    tested = min(max(1, rounded(settings.tested * people)), people - 1)
    return tested, min(rounded(settings.held_back * people), people - 1 - tested)


def rounded(number: float) -> int:
    """The nearest whole number; halves go up."""
    return int(np.floor(round(number, 9) + 0.5))
