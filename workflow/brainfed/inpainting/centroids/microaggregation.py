"""Groups of at least so many similar subjects, by microaggregation.

Domingo-Ferrer and Torra (2005), Data Mining and Knowledge Discovery 11, MDAV-generic: groups grow at the edges of the
cloud of subjects first, around the one that is farthest from the mean and the one that is farthest from that.
"""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def groups_of(points: FloatArray, least: int) -> list[IntArray]:
    """Positions of the subjects of each group, ascending; each holds `least` to 2 `least` - 1 of them.

    Args:
        points: (n, q) subjects, in coordinates whose distances say how alike they are.
        least: subjects of a group; no group where n is smaller.
    """
    left = np.arange(len(points))
    groups: list[IntArray] = []
    while len(left) >= 2 * least:
        edge = left[_farthest(points[left], points[left].mean(axis=0))]
        around, left = _around(points, left, edge, least)
        groups.append(around)
        if len(left) >= 2 * least:
            opposite = left[_farthest(points[left], points[edge])]
            around, left = _around(points, left, opposite, least)
            groups.append(around)
    return [*groups, left] if len(left) >= least else groups


def _farthest(points: FloatArray, origin: FloatArray) -> int:
    return int(np.argmax(_squared_distances(points, origin)))


def _around(points: FloatArray, left: IntArray, centre: np.int64, size: int) -> tuple[IntArray, IntArray]:
    """The `size` of `left` that are nearest to `centre`, itself among them, and the others; both ascending."""
    order = np.argsort(_squared_distances(points[left], points[centre]), kind="stable")
    return np.sort(left[order[:size]]), np.sort(left[order[size:]])


def _squared_distances(points: FloatArray, origin: FloatArray) -> FloatArray:
    return np.asarray(np.square(points - origin).sum(axis=1))
