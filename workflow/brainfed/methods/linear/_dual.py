"""Linear models in the dual: ridge, and many logistic regressions side by side."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import expit

from brainfed.runtime import BoolArray, Float64, FloatArray, IntArray
from brainfed.samples import training_moments

# Linear models of n subjects with d >> n features, fitted exactly in n dimensions.
#
# With an L2 penalty and a free intercept the weights lie in the span of the centred training rows
# (representer theorem): w = Z' a. So a fit needs the (n, n) Gram matrix Z Z' only. It returns the
# (d,) weights, which score every subject alone.


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
    features: FloatArray, rows: BoolArray, standardise: Literal["institution", "none"], norm: float = 0.0
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


# Many logistic regressions of one set of subjects side by side: other penalties, other subjects left out.
#
# Newton's method, with conjugate gradients for its steps. All fits share the coordinates of the subjects, so a product
# of a step is one of matrices: a fit's weights are a column. The coordinates have orthogonal columns, and so a Hessian
# is close to its diagonal, which preconditions it.

STEPS, DIRECTIONS, HALVINGS = 60, 60, 30
"""Most steps of Newton's method, of conjugate gradients in one, and halvings of one."""
TOLERANCE = 1e-12
"""Expected decrease of the objective, as a share of it, of the last step."""


@dataclass(frozen=True)
class Fits:
    """K logistic regressions with penalties: |b|^2 / 2 + C sum of log(1 + exp(-y (R b + a))) over their subjects.

    Attributes:
        coordinates: (n, r) R, of orthogonal columns.
        labels: (n,) in {0, 1}.
        kept: (n, K) whether a fit has a subject.
        costs: (K,) C.
    """

    coordinates: Float64
    labels: IntArray
    kept: BoolArray
    costs: Float64

    def margins(self) -> Float64:
        """Margins (n, K) of all subjects by every fit."""
        rows, fits = self.kept.shape
        signs = np.where(self.labels[:, None] == 1, 1.0, -1.0)
        weights, margins = np.zeros((self.coordinates.shape[1] + 1, fits)), np.zeros((rows, fits))
        open_fits = np.arange(fits)
        for _ in range(STEPS):
            step, decrease = self._step(weights[:, open_fits], margins[:, open_fits], open_fits)
            moved = self._margins(step)
            size = self._size(signs, weights[:, open_fits], step, margins[:, open_fits], moved, decrease, open_fits)
            weights[:, open_fits] += size * step
            margins[:, open_fits] += size * moved
            value = self._objective(signs, weights[:, open_fits], margins[:, open_fits], open_fits)
            open_fits = open_fits[(decrease > TOLERANCE * value) & (size > 0)]
            if not len(open_fits):
                break
        return margins

    def _margins(self, weights: Float64) -> Float64:
        return np.asarray(self.coordinates @ weights[:-1] + weights[-1])

    def _objective(self, signs: Float64, weights: Float64, margins: Float64, fits: IntArray) -> Float64:
        losses = np.logaddexp(0.0, -signs * margins)
        penalty = (weights[:-1] ** 2).sum(axis=0) / 2
        return np.asarray(penalty + self.costs[fits] * np.where(self.kept[:, fits], losses, 0.0).sum(axis=0))

    def _step(self, weights: Float64, margins: Float64, fits: IntArray) -> tuple[Float64, Float64]:
        """Newton's step (r + 1, K) of each fit, and the decrease that it expects."""
        kept, costs = self.kept[:, fits], self.costs[fits]
        shares = expit(margins)
        errors = np.where(kept, shares - self.labels[:, None], 0.0) * costs
        gradient = np.vstack([weights[:-1] + self.coordinates.T @ errors, errors.sum(axis=0)])
        curvature = np.where(kept, shares * (1 - shares), 0.0) * costs
        total = curvature.sum(axis=0)
        squares = (self.coordinates**2).sum(axis=0)
        diagonal = np.vstack([1.0 + squares[:, None] * (total / len(kept)), np.maximum(total, np.finfo(float).tiny)])
        step, residual = np.zeros_like(gradient), -gradient
        scaled = residual / diagonal
        direction, product = scaled.copy(), (residual * scaled).sum(axis=0)
        first = product.copy()
        # Far from the minimum a rough step is enough: the better the gradient, the better the step.
        enough = first * np.minimum(0.1, np.sqrt(first / (first + 1.0))) ** 2
        for _ in range(DIRECTIONS):
            if not np.any(product > enough):
                break
            image = self._margins(direction) * curvature
            curved = np.vstack([direction[:-1] + self.coordinates.T @ image, image.sum(axis=0)])
            bend = (direction * curved).sum(axis=0)
            length = np.where((product > enough) & (bend > 0), product / np.where(bend > 0, bend, 1.0), 0.0)
            step += length * direction
            residual -= length * curved
            scaled = residual / diagonal
            following = (residual * scaled).sum(axis=0)
            direction = scaled + np.where(product > 0, following / np.where(product > 0, product, 1.0), 0.0) * direction
            product = np.where(length > 0, following, np.minimum(product, enough))
        return step, np.asarray(-(gradient * step).sum(axis=0))

    def _size(
        self,
        signs: Float64,
        weights: Float64,
        step: Float64,
        margins: Float64,
        moved: Float64,
        decrease: Float64,
        fits: IntArray,
    ) -> Float64:
        """(K,) shares of the steps that decrease the objective enough (Armijo); 0 where only rounding is left."""
        before = self._objective(signs, weights, margins, fits)
        size, waiting = np.ones(len(fits)), np.ones(len(fits), dtype=bool)
        for _ in range(HALVINGS):
            after = self._objective(signs, weights + size * step, margins + size * moved, fits)
            waiting = after > before - 1e-4 * size * decrease
            if not waiting.any():
                return size
            size[waiting] /= 2
        size[waiting] = 0.0
        return size
