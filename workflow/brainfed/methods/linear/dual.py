"""Linear models of n subjects with d >> n features, fitted exactly in n dimensions.

With an L2 penalty and a free intercept the weights lie in the span of the centred training rows
(representer theorem): w = Z' a. So a fit needs the (n, n) Gram matrix Z Z' only. It returns the
(d,) weights, which score every subject alone.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from brainfed.samples.inputs import FloatArray
from brainfed.samples.standardise import training_moments

Float64 = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """A score for raw features x: weights . x + intercept.

    Attributes:
        weights: (d,).
        intercept: of the score.
        pattern: (d,) change of the features along with a score that rises by its standard deviation over the training
            subjects; None for a constant score.
    """

    weights: Float64
    intercept: float
    pattern: Float64 | None = None

    def scores(self, features: FloatArray) -> Float64:
        """Scores (n,) of the features (n, d)."""
        return np.asarray(features.astype(np.float64) @ self.weights + self.intercept)


@dataclass(frozen=True)
class TrainingSpan:
    """The training subjects as vectors: standardised, centred, of mean squared norm 1.

    One number scales all columns, so that a penalty means the same for any number of features.
    Centring changes no model with a free intercept. The Gram matrix is accumulated in float64: the
    smallest penalties would otherwise fit float32's rounding, and it costs half a second for
    828 subjects x 19,900 features.

    Attributes:
        rows: (n, d) vectors Z = (X - mean) / divisor.
        mean, divisor: (d,).
        gram: (n, n) Z Z'.
    """

    rows: Float64
    mean: Float64
    divisor: Float64
    gram: Float64

    def model(self, dual: Float64, intercept: float) -> LinearModel:
        """The model Z' dual, expressed for raw features."""
        weights = (self.rows.T @ dual) / self.divisor
        return LinearModel(weights, float(intercept - self.mean @ weights), self.pattern(dual))

    def pattern(self, dual: Float64) -> Float64 | None:
        """Pattern (d,) of the model Z' dual (Haufe et al. 2014, NeuroImage 87, eq. 6): cov(X) w / var(X w).

        The weights of a linear model also cancel noise that features share. The pattern is free of that: it is the
        regression of each feature on the score. The score has variance 1, so that patterns of models with
        different penalties have one scale.
        """
        scores = self.gram @ dual
        deviation = float(scores.std())
        if deviation == 0:
            return None
        scale = np.where(np.isfinite(self.divisor), self.divisor, 0.0)
        return np.asarray(scale * (self.rows.T @ scores) / (len(scores) * deviation))

    def coordinates(self) -> tuple[Float64, Float64]:
        """Coordinates (n, r) of the rows in an orthonormal basis of their span, and the inverse map.

        Returns:
            R = U sqrt(S) and B = U / sqrt(S), both (n, r), from the Gram matrix U S U' of rank r:
            the weights R' b of these coordinates are the dual coefficients B b.
        """
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > values.max(initial=0.0) * len(values) * np.finfo(np.float64).eps
        root = np.sqrt(values[kept])
        return vectors[:, kept] * root, vectors[:, kept] / root


def training_span(
    features: FloatArray, rows: NDArray[np.bool_], standardise: Literal["institution", "none"], norm: float = 0.0
) -> TrainingSpan:
    """The training subjects `rows` (n,) of `features` (n, d), z-scored with their own moments or only centred.

    They are divided by the root of their mean squared norm, or by `norm` if it is given.
    """
    mean, deviation = training_moments(features, rows)
    if standardise == "none":
        deviation = np.ones_like(deviation)
    vectors = (features[rows] - mean) / deviation
    norm = norm or float(np.sqrt(np.mean(np.einsum("ij,ij->i", vectors, vectors)))) or 1.0
    vectors /= norm
    return TrainingSpan(vectors, mean, deviation * norm, vectors @ vectors.T)
