"""Squared distances of many subjects by one matrix product: |a - b|^2 = |a|^2 - 2 a.b + |b|^2."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MANY = 5000
"""Largest number of subjects for distances by pair; matrix products compute those of more subjects."""
TILE_ROWS, TILE_COLUMNS = 512, 4096
"""Pairs of one block, which fits into the cache."""

FloatMatrix = NDArray[np.float64]


def factors(rows: FloatMatrix, columns: FloatMatrix, dtype: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Matrices (a, d_h + 2) and (d_h + 2, b) whose product is the squared distances of rows (a, d_h) and columns."""
    rows_squared, columns_squared = (np.square(points).sum(axis=1)[:, None] for points in (rows, columns))
    left = np.hstack([-2 * rows, rows_squared, np.ones_like(rows_squared)])
    right = np.hstack([columns, np.ones_like(columns_squared), columns_squared])
    return left.astype(dtype), np.ascontiguousarray(right.T, dtype=dtype)


def rounding_of_products(points: FloatMatrix) -> FloatMatrix:
    """(n,) twice the part of each point in the error of squared distances in float32 (Higham 2002, Sec. 3.1).

    The error grows with (|a| + |b|)^2, which is at most 2 |a|^2 + 2 |b|^2: the sum of both points' parts.
    """
    squared = np.square(points).sum(axis=1)
    return np.asarray(2 * (points.shape[1] + 8) * np.finfo(np.float32).eps * squared)


def mean_distance_by_products(embedding: FloatMatrix) -> float:
    """Mean Euclidean distance over all pairs of rows (n, d_h), n >= 2."""
    centred = embedding - embedding.mean(axis=0)
    left, right = factors(centred, centred, np.float64)
    count, total = len(embedding), 0.0
    for start in range(0, count, TILE_ROWS):
        for first in range(start, count, TILE_COLUMNS):
            squared = left[start : start + TILE_ROWS] @ right[:, first : first + TILE_COLUMNS]
            if first == start:
                squared[np.tri(*squared.shape, dtype=np.bool_)] = 0
            np.maximum(squared, 0, out=squared)
            total += float(np.sqrt(squared, out=squared).sum())
    return total / (count * (count - 1) / 2)
