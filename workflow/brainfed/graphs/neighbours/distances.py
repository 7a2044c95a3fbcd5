"""Distances of subjects: Euclidean, or one minus the correlation of their values (Parisot et al. 2018).

The released code of Parisot et al. uses the correlation distance d = 1 - r of the selected features. Centred rows of
length 1 have r = u.v, so d = |u - v|^2 / 2.
"""

import numpy as np
from scipy.spatial.distance import cdist

from brainfed.graphs.neighbours.products import FloatMatrix
from brainfed.graphs.settings import Distance


def comparable(embedding: FloatMatrix, distance: Distance) -> FloatMatrix:
    """Prepare rows (n, d_h) for `squared_distances`: for correlations, centre them and scale them to length 1.

    A row without variation, which correlates with no other, becomes zeros.
    """
    if distance == "euclidean":
        return embedding
    centred = np.where(np.ptp(embedding, axis=1, keepdims=True) > 0, embedding, 0.0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred / np.where(length > 0, length, 1.0))


def squared_distances(rows: FloatMatrix, columns: FloatMatrix, distance: Distance) -> FloatMatrix:
    """(a, b) squared distances of comparable rows (a, d_h) and columns (b, d_h)."""
    squared = np.asarray(cdist(rows, columns, "sqeuclidean"), dtype=np.float64)
    return squared if distance == "euclidean" else np.square(_one_minus_correlation(squared, rows, columns))


def distances(rows: FloatMatrix, columns: FloatMatrix, distance: Distance) -> FloatMatrix:
    """(a, b) distances of comparable rows (a, d_h) and columns (b, d_h)."""
    if distance == "euclidean":
        return np.asarray(cdist(rows, columns), dtype=np.float64)
    return _one_minus_correlation(np.asarray(cdist(rows, columns, "sqeuclidean")), rows, columns)


def _one_minus_correlation(squared: FloatMatrix, rows: FloatMatrix, columns: FloatMatrix) -> FloatMatrix:
    """One minus correlation from |u - v|^2; 1 for rows without variation."""
    flat, others = np.square(rows).sum(axis=1) == 0, np.square(columns).sum(axis=1) == 0
    return np.asarray((squared + flat[:, None] + others[None, :]) / 2)
