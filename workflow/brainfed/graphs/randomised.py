"""Principal components of features that are too large to be copied, by blocks of rows.

Randomised subspace iteration on the covariance (Halko, Martinsson & Tropp 2011, Alg. 4.4 and 5.3): each pass over
the features centres (and scales) one block after the other, so that nothing of their size is ever allocated.
Products are in the precision of the features, sums over blocks and small decompositions in float64.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr
from sklearn.utils.extmath import svd_flip

BLOCK_ENTRIES = 1 << 23
"""Numbers of the features that are centred at once."""
OVERSAMPLES = 10
ITERATIONS = 7
"""As scikit-learn's randomised PCA does for few components."""

FloatArray = NDArray[np.float32] | NDArray[np.float64]
Float64 = NDArray[np.float64]


def row_slices(features: FloatArray) -> Iterator[slice]:
    """Consecutive rows of features (n, d), at most `BLOCK_ENTRIES` numbers each."""
    height = max(1, BLOCK_ENTRIES // features.shape[1])
    for start in range(0, len(features), height):
        yield slice(start, min(start + height, len(features)))


def deviation_by_blocks(features: FloatArray, mean: Float64) -> Float64:
    """Population standard deviation (d,) around the `mean` (d,)."""
    squares = np.zeros(features.shape[1])
    for block in row_slices(features):
        squares += np.square(features[block] - mean).sum(axis=0)
    return np.asarray(np.sqrt(squares / len(features)))


def randomised_components(features: FloatArray, mean: Float64, deviation: Float64 | None, width: int) -> Float64:
    """At most `width` strongest principal components (d_h, d), orthonormal, the same every time.

    Args:
        features: (n, d).
        mean: (d,) of the rows.
        deviation: (d,) to divide by; None: features as they are.
        width: how many components; directions without variance are left out.
    """
    columns = features.shape[1]
    axes: NDArray[Any]
    basis = np.random.default_rng(0).standard_normal((columns, min(width + OVERSAMPLES, columns)))
    for _ in range(ITERATIONS):
        image = np.zeros(basis.shape[::-1])
        axes = basis.astype(features.dtype)
        for block in _centred_blocks(features, mean, deviation):
            image += (block @ axes).T @ block
        basis = np.asarray(qr(image.T, mode="economic")[0], dtype=np.float64)
    gram = np.zeros((basis.shape[1], basis.shape[1]))
    axes = basis.astype(features.dtype)
    for block in _centred_blocks(features, mean, deviation):
        projected = np.asarray(block @ axes, dtype=np.float64)
        gram += projected.T @ projected
    values, vectors = eigh(gram)
    strongest = slice(None, -width - 1, -1)
    varying = values[strongest] > columns * np.finfo(np.float64).eps * np.trace(gram)
    components = (basis @ vectors[:, strongest]).T[varying]
    return np.asarray(svd_flip(None, components, u_based_decision=False)[1], dtype=np.float64)


def _centred_blocks(features: FloatArray, mean: Float64, deviation: Float64 | None) -> Iterator[NDArray[Any]]:
    """Blocks of rows in the precision of the features."""
    origin: NDArray[Any] = mean.astype(features.dtype)
    scale: NDArray[Any] | None = None if deviation is None else deviation.astype(features.dtype)
    for rows in row_slices(features):
        block = features[rows] - origin
        yield block if scale is None else block / scale
