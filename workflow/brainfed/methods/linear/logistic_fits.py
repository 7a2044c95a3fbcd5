"""Many logistic regressions of one set of subjects side by side: other penalties, other subjects left out.

Newton's method, with conjugate gradients for its steps. All fits share the coordinates of the subjects, so a product of
a step is one of matrices: a fit's weights are a column. The coordinates have orthogonal columns, and so a Hessian is
close to its diagonal, which preconditions it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from brainfed.samples.inputs import IntArray

Float64 = NDArray[np.float64]

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
    kept: NDArray[np.bool_]
    costs: Float64

    def margins(self) -> Float64:
        """Margins (n, K) of all subjects by every fit."""
        rows, fits = self.kept.shape
        signs = np.where(self.labels[:, None] == 1, 1.0, -1.0)
        weights, found = np.zeros((self.coordinates.shape[1] + 1, fits)), np.zeros((rows, fits))
        open_fits = np.arange(fits)
        for _ in range(STEPS):
            step, decrease = self._step(weights[:, open_fits], found[:, open_fits], open_fits)
            moved = self._margins(step)
            size = self._size(signs, weights[:, open_fits], step, found[:, open_fits], moved, decrease, open_fits)
            weights[:, open_fits] += size * step
            found[:, open_fits] += size * moved
            value = self._objective(signs, weights[:, open_fits], found[:, open_fits], open_fits)
            open_fits = open_fits[(decrease > TOLERANCE * value) & (size > 0)]
            if not len(open_fits):
                break
        return found

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
