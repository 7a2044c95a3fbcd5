"""The low-dimensional H of FedNI Sec. III-A: principal components, exact or randomised, or selected features."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd

from brainfed.imaging.fitted import both_classes, elimination_ranks
from brainfed.runtime import Float64, FloatArray, IntArray

# Principal components of large features, by blocks of rows without a copy.
#
# Block Krylov iteration on the covariance from a random start (Halko, Martinsson, Shkolnisky & Tygert 2011; Musco &
# Musco 2015, Alg. 2): each pass over the features centres (and scales) one block after the other, so that no array of
# their size is allocated. Passes continue until the components equal those of the exact decomposition, so that a graph
# does not depend on the method. Products are in the precision of the features, sums over blocks and small
# decompositions in float64.


BLOCK_ENTRIES = 1 << 23
"""Largest number of features' entries in one block."""
OVERSAMPLES = 10
ACCURACY = 0.1
"""Bound on the sine of a component's angle to the exact one (residual over gap); the angle is far below it."""
PASSES = 8, 40
"""Least and largest number of passes."""
NOTHING = 1e4 * np.finfo(np.float64).eps
"""Directions below this share of the largest variance are rounding."""


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
        converged = done >= least and bool((residuals <= ACCURACY * _gaps(values)[:width]).all())
        if converged or directions.shape[1] == 0:
            break
        added = np.asarray(qr(_outside(directions, basis), mode="economic")[0], dtype=np.float64)
    components = (basis @ vectors).T
    squares = np.zeros(len(components))
    for block in _centred_blocks(features, mean, deviation):
        squares += np.square(block @ components.T.astype(features.dtype), dtype=np.float64).sum(axis=0)
    components = components[squares > columns * np.finfo(np.float64).eps * np.trace(projected)]
    return _with_signs(components)


def _with_signs(components: Float64) -> Float64:
    """The components (k, d), the largest number of each positive; scikit-learn's `PCA` has the same signs."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * signs[:, np.newaxis], dtype=np.float64)


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


# Low-dimensional H of FedNI Sec. III-A by principal components of the imaging features.

EXACT_RANK = 2500
"""Largest number of rows or columns of an exact decomposition; larger ones are randomised and by blocks."""


class Embedding(Protocol):
    """Map from features to the space in which subjects are compared."""

    def __call__(self, features: FloatArray) -> Float64:
        """Features (n, d) -> embedding (n, d_h)."""


@dataclass(frozen=True)
class Projection:
    """A fitted projection: mean (d,) and components (d_h, d).

    Principal components are orthonormal, the strongest first; those of scaled features are so before their division by
    the features' deviations.
    """

    mean: FloatArray
    components: FloatArray

    def __call__(self, features: FloatArray) -> Float64:
        """Features (n, d) -> embedding (n, d_h)."""
        axes, origin = self.components.T, self.mean @ self.components.T
        if not _is_large(features):
            return np.asarray(features @ axes - origin, dtype=np.float64)
        embedding = np.empty((len(features), len(origin)))
        for rows in row_slices(features):
            embedding[rows] = features[rows] @ axes - origin
        return embedding


def as_they_are(features: FloatArray) -> Float64:
    """Use features (n, d) as the embedding without a fit."""
    return features.astype(np.float64)


@dataclass(frozen=True)
class ZScores:
    """Z-scores by a mean (d,) and a deviation (d,), infinite for constant features."""

    mean: FloatArray
    deviation: FloatArray

    def __call__(self, features: FloatArray) -> Float64:
        """Features (n, d) -> embedding (n, d)."""
        return np.asarray((features - self.mean) / self.deviation, dtype=np.float64)


def fit_z_scores(features: FloatArray) -> ZScores:
    """Fit z-scores to features (n, d); features that are constant over these rows become 0."""
    mean = features.mean(axis=0, dtype=np.float64)
    return ZScores(mean, _deviation(features, mean))


def fit_projection(features: FloatArray, dimensions: int) -> Projection:
    """Fit at most min(dimensions, n - 1, d) principal components to features (n, d).

    Directions without variance are left out; none remains for n < 2 or equal subjects.
    """
    subjects, columns = features.shape
    width = min(dimensions, subjects - 1, columns)
    if width < 1:
        return Projection(np.zeros(columns), np.zeros((0, columns)))
    mean = features.mean(axis=0, dtype=np.float64)
    if _is_large(features):
        return Projection(mean, randomised_components(features, mean, None, width))
    return Projection(mean, _exact_components(features - mean, width))


def fit_scaled_projection(features: FloatArray, dimensions: int) -> Projection:
    """Fit principal components to the z-scores of features (n, d), as a projection of raw features.

    Features that are constant over these rows are ignored in all rows.
    """
    mean = features.mean(axis=0, dtype=np.float64)
    deviation = _deviation(features, mean)
    if _is_large(features):
        return Projection(mean, randomised_components(features, mean, deviation, dimensions) / deviation)
    fitted = fit_projection((features - mean) / deviation, dimensions)
    return Projection(mean, fitted.components / deviation)


def _deviation(features: FloatArray, mean: Float64) -> Float64:
    """Standard deviation (d,) around the mean (d,), infinite for constant features."""
    large = _is_large(features)
    spread = deviation_by_blocks(features, mean) if large else features.std(axis=0, dtype=np.float64)
    return np.where(np.ptp(features, axis=0) > 0, spread, np.inf)


def _is_large(features: FloatArray) -> bool:
    return bool(min(features.shape) > EXACT_RANK)


def _exact_components(centred: Float64, width: int) -> Float64:
    """Strongest right singular vectors, by the smaller of the two Gram matrices.

    For 1,000 subjects by 20,000 connections this is ten times faster than the SVD.
    """
    subjects, columns = centred.shape
    gram = centred @ centred.T if subjects < columns else centred.T @ centred
    size = len(gram)
    values, vectors = eigh(gram, subset_by_index=[size - width, size - 1])
    varying = values > size * np.finfo(np.float64).eps * np.trace(gram)
    values, vectors = values[varying][::-1], vectors[:, varying][:, ::-1]
    components = (centred.T @ vectors / np.sqrt(values)).T if subjects < columns else vectors.T
    return _with_signs(components)


# Low-dimensional H of FedNI Sec. III-A by recursive feature elimination (Parisot et al. 2018, Sec. 2.3).


def selected_features(features: FloatArray, labels: IntArray, dimensions: int) -> IntArray:
    """Select the min(dimensions, d) features, ascending, that elimination on labelled subjects keeps.

    The result is empty if the labels are of one class, as at a site that is left out.

    Args:
        features: (n, d) of the training subjects.
        labels: (n,) in {0, ..., C - 1}; -1: the label must not be used.
    """
    if not both_classes(labels):
        return np.zeros(0, dtype=np.int64)
    labelled = labels >= 0
    return np.flatnonzero(elimination_ranks(features[labelled], labels[labelled]) < dimensions)


def selecting_projection(features: FloatArray, selected: IntArray) -> Projection:
    """Projection to the features `selected` (d_h,), z-scored by all n rows of `features` (n, d), without labels."""
    varying = np.ptp(features[:, selected], axis=0) > 0
    deviation = np.where(varying, features[:, selected].std(axis=0, dtype=np.float64), 1.0)
    components = np.zeros((len(selected), features.shape[1]))
    components[np.arange(len(selected)), selected] = 1 / deviation
    return Projection(features.mean(axis=0, dtype=np.float64), components)
