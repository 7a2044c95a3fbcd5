"""Logistic regression in the span of the training subjects, C chosen by the log loss of inner folds.

Inner folds only rank the costs, so L-BFGS fits them until the loss converges. Newton's method fits the final model,
exact to rounding.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from brainfed.methods.linear.dual import LinearModel
from brainfed.methods.linear.fitting import LinearTask, TrainingSet, train_linear
from brainfed.methods.linear.logistic import METHOD, LogisticSettings
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inner_folds import choose_cost, inner_folds
from brainfed.samples.inputs import IntArray, MethodInputs, Outcome


def train(inputs: MethodInputs, settings: LogisticSettings, run: Run) -> Outcome:
    """Entry point of the method `logistic`."""

    def fit(subjects: TrainingSet) -> LinearModel:
        return fit_logistic(subjects, settings.costs)

    task = LinearTask(fit, "probability", settings.training, settings.standardise, METHOD.shared_tensors)
    return train_linear(task, inputs, run)


def fit_logistic(subjects: TrainingSet, costs: Sequence[float]) -> LinearModel:
    """The logistic regression of the best cost, fitted to all the training subjects."""
    coordinates, back = subjects.span.coordinates()
    labels = subjects.labels

    def margins(cost: float, kept: IntArray, held_out: IntArray) -> NDArray[np.float64]:
        regression = LogisticRegression(C=cost, tol=1e-6, max_iter=5000).fit(coordinates[kept], labels[kept])
        return np.asarray(regression.decision_function(coordinates[held_out]))

    cost = choose_cost(costs, labels, inner_folds(labels, subjects.twins, subjects.seed), margins, _log_loss)
    regression = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-10).fit(coordinates, labels)
    return subjects.span.model(back @ regression.coef_[0], float(regression.intercept_[0]))


def _log_loss(labels: IntArray, margins: NDArray[np.float64]) -> float:
    return float(np.mean(np.logaddexp(0.0, (1 - 2 * labels) * margins)))
