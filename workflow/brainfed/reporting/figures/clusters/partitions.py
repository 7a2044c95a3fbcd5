"""Clusters over the rounds of one training, and the order of institutions in which each cluster is one band."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Partitions:
    """One training.

    Attributes:
        institutions: names, from the top of the figure to its bottom.
        clusters: (T, M) number of each institution's cluster after every round, in that order; of the parts of a
            cluster the largest keeps the number.
    """

    institutions: tuple[str, ...]
    clusters: IntArray

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.clusters)

    @property
    def cuts(self) -> list[int]:
        """Numbers of the rounds in which a cluster was cut, before their average, from 1."""
        before = np.vstack([np.zeros_like(self.clusters[:1]), self.clusters[:-1]])
        return (np.flatnonzero((before != self.clusters).any(axis=1)) + 1).tolist()

    @property
    def sizes(self) -> list[int]:
        """Numbers of institutions of the clusters after the last round, the largest first."""
        return sorted(np.unique(self.clusters[-1], return_counts=True)[1].tolist(), reverse=True)


def in_order(institutions: Sequence[str], clusters: IntArray) -> Partitions:
    """Order institutions by their clusters after the first round, then the second, and so on, and then by place.

    Clusters are cut and never joined, so the institutions of a cluster have been together in every round before, and
    follow each other.

    Args:
        institutions: M names.
        clusters: (T, M).
    """
    numbered = _largest_keeps(clusters)
    order = np.lexsort([np.arange(len(institutions)), *numbered[::-1]])
    return Partitions(tuple(institutions[place] for place in order), numbered[:, order])


def _largest_keeps(clusters: IntArray) -> IntArray:
    """(T, M) the same clusters in other numbers: of the parts of a cluster the (first) largest keeps its number."""
    found, latest = np.empty_like(clusters), np.zeros_like(clusters[0])
    for number, after in enumerate(clusters):
        current = latest.copy()
        for cluster in np.unique(latest):
            parts, sizes = np.unique(after[latest == cluster], return_counts=True)
            for part in np.delete(parts, sizes.argmax()):
                current[(latest == cluster) & (after == part)] = current.max() + 1
        found[number] = latest = current
    return found


def read_partitions(path: str) -> Partitions | None:
    """The clusters of the first fold of a history; None if it has none."""
    history = read_table(path, ["fold", "institution", "round"])
    if "cluster" not in history or history["cluster"].isna().all():
        return None
    first = history[history["fold"] == history["fold"].min()]
    names = list(dict.fromkeys(first["institution"]))
    table = first.pivot(index="round", columns="institution", values="cluster").sort_index()[names]
    return in_order(names, table.to_numpy(dtype=np.int64))
