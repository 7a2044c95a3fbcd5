"""Folds of subjects in their institutions: stratified by diagnosis, by site and diagnosis, or one a site."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.splits.even_folds import even_folds
from brainfed.runtime.streams import Streams

UNTESTED = -1
"""In place of a fold: the subject is never scored. It trains in all folds if it has a label."""


def stratified(
    subjects: pd.DataFrame, institution: NDArray[np.object_], folds: int, streams: Streams
) -> NDArray[np.int64]:
    """(n,) fold of each subject; those of each diagnosis are spread evenly in each institution.

    Args:
        subjects: group (of twins), diagnosis (-1 without one).
        institution: (n,) names.
        folds: number of folds.
        streams: random streams of the repeat.
    """
    fold = np.full(len(subjects), UNTESTED, dtype=np.int64)
    labelled = subjects["diagnosis"].to_numpy() >= 0
    for name in sorted(set(institution[labelled])):
        members = np.flatnonzero((institution == name) & labelled)
        diagnosis = subjects["diagnosis"].to_numpy()[members]
        group = subjects["group"].to_numpy()[members]
        fold[members] = folds_of_groups(diagnosis, group, folds, streams.key("folds", name) % 2**32)
    return fold


def folds_of_groups(
    classes: NDArray[np.int64], groups: NDArray[np.object_], folds: int, seed: int
) -> NDArray[np.int64]:
    """(n,) fold of each member; a group is in one fold, and each class is spread as evenly as groups allow.

    Groups come in random order, those with the most uneven counts of classes first. Each goes to the fold where the
    shares of the classes differ least between folds afterwards, the one with the fewest members among ties. This is
    what StratifiedGroupKFold of scikit-learn 1.8 and 1.9 does with a shuffle. Version 1.7 deals other folds for one
    seed, so the folds of a study must not depend on it.

    Args:
        classes: (n,) codes.
        groups: (n,) names.
        folds: number of folds.
        seed: below 2**32.
    """
    _, code, size = np.unique(classes, return_inverse=True, return_counts=True)
    _, group = np.unique(groups, return_inverse=True)
    counts = np.zeros((group.max() + 1, len(size)))
    np.add.at(counts, (group, code), 1)
    order = np.arange(len(counts))
    np.random.RandomState(seed).shuffle(order)
    order = order[np.argsort(-np.std(counts[order], axis=1), kind="stable")]
    held = np.zeros((folds, len(size)))
    fold = np.empty(len(counts), dtype=np.int64)
    for member in order:
        fold[member] = _emptiest(held, counts[member], size)
        held[fold[member]] += counts[member]
    return fold[group]


def _emptiest(held: NDArray[np.float64], added: NDArray[np.float64], size: NDArray[np.int64]) -> int:
    """The fold that a group with these counts of classes goes to.

    Args:
        held: (folds, classes) counts of the groups so far.
        added: (classes,) counts of the group.
        size: (classes,) counts of all.
    """
    best, least, fewest = 0, np.inf, np.inf
    for index, members in enumerate(held.sum(axis=1)):
        tried = held.copy()
        tried[index] += added
        unevenness = float(np.mean(np.std(tried / size, axis=0)))
        if unevenness < least or (np.isclose(unevenness, least) and members < fewest):
            best, least, fewest = index, unevenness, members
    return best


def stratified_by_site(
    subjects: pd.DataFrame, institution: NDArray[np.object_], folds: int, streams: Streams
) -> NDArray[np.int64]:
    """(n,) fold of each subject; those of each diagnosis are spread evenly in each institution, site, and both.

    Their numbers in any two folds differ by one at most, also where a site has fewer subjects than folds. Twins count
    once, with the diagnosis, the site and the institution of the first labelled one.

    Args:
        subjects: group (of twins), site, diagnosis (-1 without one); the site of every labelled subject is known.
        institution: (n,) names.
        folds: number of folds.
        streams: random streams of the repeat.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    people = subjects.assign(institution=institution)[labelled].drop_duplicates("group").sort_values("group")
    drawn: dict[str, int] = {}
    for code in sorted(set(people["diagnosis"].tolist())):
        members = people[people["diagnosis"] == code]
        rows, columns = (pd.factorize(members[key], sort=True)[0].astype(np.int64) for key in ("institution", "site"))
        found = even_folds(rows, columns, folds, streams.numpy("folds", "by site", code))
        drawn |= dict(zip(members["group"], found.tolist(), strict=True))
    fold = subjects["group"].map(drawn).fillna(UNTESTED).to_numpy(dtype=np.int64)
    return np.where(labelled, fold, UNTESTED)


def left_out_in_turn(
    subjects: pd.DataFrame, institution: NDArray[np.object_], sites: Sequence[str]
) -> NDArray[np.int64]:
    """(n,) fold of each subject: the rank of its site among `sites`.

    Args:
        subjects: diagnosis (-1 without one).
        institution: (n,) the site of each subject.
        sites: all sites that are tested, in order.
    """
    rank = {name: index for index, name in enumerate(sites)}
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    places = zip(institution, labelled, strict=True)
    return np.array([rank[site] if known else UNTESTED for site, known in places], dtype=np.int64)
