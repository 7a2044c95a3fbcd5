"""Logistic regression in the span of the training subjects, C chosen by the log loss of inner folds.

All costs and inner folds are fitted side by side (`logistic_fits`), and the final model by Newton's method.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from brainfed.methods.linear.declaration import LOGISTIC, LogisticSettings
from brainfed.methods.linear.dual import LinearModel
from brainfed.methods.linear.fitting import LinearTask, TrainingSet, train_linear
from brainfed.methods.linear.logistic_fits import Fits
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inner_folds import choose_cost, inner_folds
from brainfed.samples.inputs import IntArray, MethodInputs, Outcome


def train(inputs: MethodInputs, settings: LogisticSettings, run: Run) -> Outcome:
    """Entry point of the method `logistic`."""

    def fit(subjects: TrainingSet) -> LinearModel:
        return fit_logistic(subjects, settings.costs)

    task = LinearTask(fit, "probability", settings.training, settings.standardise, LOGISTIC.crossing.tensors)
    return train_linear(task, inputs, run)


def fit_logistic(subjects: TrainingSet, costs: Sequence[float]) -> LinearModel:
    """The logistic regression of the best cost, fitted to all the training subjects."""
    coordinates, back = subjects.span.coordinates()
    labels, folds = subjects.labels, inner_folds(subjects.labels, subjects.twins, subjects.seed)
    place = {(cost, fold): place for place, (fold, cost) in enumerate(product(range(int(folds.max()) + 1), costs))}
    fits = Fits(
        coordinates,
        labels,
        np.column_stack([folds != fold for _, fold in place]),
        np.array([cost for cost, _ in place]),
    )
    every = cache(fits.margins)

    def margins(cost: float, _: IntArray, held_out: IntArray) -> NDArray[np.float64]:
        return np.asarray(every()[held_out, place[cost, int(folds[held_out[0]])]])

    cost = choose_cost(costs, labels, folds, margins, _log_loss)
    regression = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-10).fit(coordinates, labels)
    return subjects.span.model(back @ regression.coef_[0], float(regression.intercept_[0]))


def _log_loss(labels: IntArray, margins: NDArray[np.float64]) -> float:
    return float(np.mean(np.logaddexp(0.0, (1 - 2 * labels) * margins)))
