"""Principal components of large features, by blocks of rows without a copy.

Block Krylov iteration on the covariance from a random start (Halko, Martinsson, Shkolnisky & Tygert 2011; Musco & Musco
2015, Alg. 2): each pass over the features centres (and scales) one block after the other, so that no array of their
size is allocated. Passes continue until the components equal those of the exact decomposition, so that a graph does
not depend on the method. Products are in the precision of the features, sums over blocks and small decompositions in
float64.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from sklearn.utils.extmath import svd_flip

BLOCK_ENTRIES = 1 << 23
"""Largest number of features' entries in one block."""
OVERSAMPLES = 10
ACCURACY = 0.1
"""Bound on the sine of a component's angle to the exact one (residual over gap); the angle is far below it."""
PASSES = 8, 40
"""Least and largest number of passes."""
NOTHING = 1e4 * np.finfo(np.float64).eps
"""Directions below this share of the largest variance are rounding."""

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

    The components are less exact than `ACCURACY` if `PASSES` does not suffice to separate close variances.

    Args:
        features: (n, d).
        mean: (d,) of the rows.
        deviation: (d,) divisor; None: unscaled features.
        width: number of components; directions without variance are left out.
    """
    columns = features.shape[1]
    start = np.random.default_rng(0).standard_normal((columns, min(width + OVERSAMPLES, columns)))
    added = np.asarray(qr(start, mode="economic")[0], dtype=np.float64)
    basis, projected = np.zeros((columns, 0)), np.zeros((0, 0))
    least, most = PASSES
    for done in range(1, most + 1):
        image = _covariance_times(added, features, mean, deviation)
        basis = np.hstack([basis, added])
        projected = _bordered(projected, basis.T @ image)
        size = len(projected)
        values, vectors = eigh(projected, subset_by_index=[max(0, size - width - 1), size - 1])
        values, vectors = values[::-1], vectors[:, ::-1][:, :width]
        beyond = _outside(image, basis)
        residuals = np.linalg.norm(beyond @ vectors[size - added.shape[1] :], axis=0)
        directions, lengths, _ = svd(beyond, full_matrices=False)
        directions = directions[:, lengths > NOTHING * values[0]]
        found = done >= least and bool((residuals <= ACCURACY * _gaps(values)[:width]).all())
        if found or directions.shape[1] == 0:
            break
        added = np.asarray(qr(_outside(directions, basis), mode="economic")[0], dtype=np.float64)
    components = (basis @ vectors).T
    squares = np.zeros(len(components))
    for block in _centred_blocks(features, mean, deviation):
        squares += np.square(block @ components.T.astype(features.dtype), dtype=np.float64).sum(axis=0)
    components = components[squares > columns * np.finfo(np.float64).eps * np.trace(projected)]
    return np.asarray(svd_flip(None, components, u_based_decision=False)[1], dtype=np.float64)


def _covariance_times(axes: Float64, features: FloatArray, mean: Float64, deviation: Float64 | None) -> Float64:
    """(d, b) product of n times the covariance and the axes (d, b)."""
    image = np.zeros(axes.shape[::-1])
    rounded: NDArray[Any] = axes.astype(features.dtype)
    for block in _centred_blocks(features, mean, deviation):
        image += (block @ rounded).T @ block
    return np.asarray(image.T)


def _bordered(matrix: Float64, columns: Float64) -> Float64:
    """Symmetric (a + b, a + b) matrix of a first block (a, a) and last columns (a + b, b)."""
    known = len(matrix)
    whole = np.block([[matrix, columns[:known]], [columns[:known].T, columns[known:]]])
    return np.asarray((whole + whole.T) / 2)


def _outside(vectors: Float64, basis: Float64) -> Float64:
    """Part of the vectors (d, b) orthogonal to the orthonormal basis (d, a)."""
    return vectors - basis @ (basis.T @ vectors)


def _gaps(values: Float64) -> Float64:
    """Distance of each falling value from the nearest of its neighbours (Davis & Kahan 1970)."""
    falls = np.concatenate([[np.inf], -np.diff(values), [np.inf]])
    return np.asarray(np.minimum(falls[:-1], falls[1:]))


def _centred_blocks(features: FloatArray, mean: Float64, deviation: Float64 | None) -> Iterator[NDArray[Any]]:
    """Blocks of rows in the precision of the features."""
    origin: NDArray[Any] = mean.astype(features.dtype)
    scale: NDArray[Any] | None = None if deviation is None else deviation.astype(features.dtype)
    for rows in row_slices(features):
        block = features[rows] - origin
        yield block if scale is None else block / scale
