"""Groups of similar subjects of a minimum size, by microaggregation.

Domingo-Ferrer and Torra (2005), Data Mining and Knowledge Discovery 11, MDAV-generic: groups are formed
around the subject farthest from the mean, then around the subject farthest from that one.
"""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def groups_of(points: FloatArray, min_group: int) -> list[IntArray]:
    """Positions of the subjects of each group, ascending; a group has `min_group` to 2 `min_group` - 1 subjects.

    Args:
        points: (n, q) subjects, in coordinates whose distances measure dissimilarity.
        min_group: subjects of a group; no group where n is smaller.
    """
    remaining = np.arange(len(points))
    groups: list[IntArray] = []
    while len(remaining) >= 2 * min_group:
        edge = remaining[_farthest(points[remaining], points[remaining].mean(axis=0))]
        around, remaining = _around(points, remaining, edge, min_group)
        groups.append(around)
        if len(remaining) >= 2 * min_group:
            opposite = remaining[_farthest(points[remaining], points[edge])]
            around, remaining = _around(points, remaining, opposite, min_group)
            groups.append(around)
    return [*groups, remaining] if len(remaining) >= min_group else groups


def _farthest(points: FloatArray, origin: FloatArray) -> int:
    return int(np.argmax(_squared_distances(points, origin)))


def _around(points: FloatArray, remaining: IntArray, centre: np.int64, size: int) -> tuple[IntArray, IntArray]:
    """The `size` of `remaining` nearest to `centre`, with itself, and the others; both ascending."""
    order = np.argsort(_squared_distances(points[remaining], points[centre]), kind="stable")
    return np.sort(remaining[order[:size]]), np.sort(remaining[order[size:]])


def _squared_distances(points: FloatArray, origin: FloatArray) -> FloatArray:
    return np.asarray(np.square(points - origin).sum(axis=1))
