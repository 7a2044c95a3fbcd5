"""Training of ridge, support vectors and logistic regression, each with an inner choice of its penalty."""

from collections.abc import Sequence
from functools import cache, partial
from itertools import product

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from brainfed.methods.linear._dual import Fits, LinearModel
from brainfed.methods.linear._fitting import LinearTask, TrainingSet, train_linear
from brainfed.methods.linear.declaration import LOGISTIC, RIDGE, SVM, LogisticSettings, RidgeSettings, SVMSettings
from brainfed.runtime import Float64, IntArray
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, choose_cost, inner_folds

# Ridge classifier in the dual, its penalty chosen by exact leave-one-out.
#
# Targets t = +1 (patient) and -1. For centred rows of Gram matrix K the model is b = mean(t) and
# a = G t, where G = (K + alpha I)^-1 within the vectors that sum to 0. Leaving out the subjects g
# changes their error to (G_gg)^-1 a_g (Cawley 2006, "Leave-one-out cross-validation based model
# selection criteria for weighted LS-SVMs", eq. 10), so one eigendecomposition serves all penalties.
# A subject is left out together with its twins.


def train_ridge(inputs: MethodInputs, settings: RidgeSettings, run: Run) -> Outcome:
    """Entry point of the method `ridge`."""
    inner = settings.choice == "inner_folds"
    fit = partial(fit_ridge_by_inner_folds if inner else fit_ridge, alphas=settings.alphas)
    task = LinearTask(fit, "margin", settings.training, settings.standardise, RIDGE.crossing.tensors, inner)
    return train_linear(task, inputs, run)


def fit_ridge(subjects: TrainingSet, alphas: Sequence[float]) -> LinearModel:
    """The ridge model with the smallest leave-one-out squared error, the strongest penalty among ties."""
    values, vectors = np.linalg.eigh(subjects.span.gram)
    targets = 2.0 * subjects.labels.astype(np.float64) - 1.0
    strongest_first = sorted(alphas, reverse=True)
    errors = [
        np.mean(left_out_errors(values, vectors, targets, subjects.twins, alpha) ** 2) for alpha in strongest_first
    ]
    alpha = strongest_first[int(np.argmin(errors))]
    return subjects.span.model(dual_coefficients(values, vectors, targets, alpha), float(targets.mean()))


def fit_ridge_by_inner_folds(subjects: TrainingSet, alphas: Sequence[float]) -> LinearModel:
    """The ridge model with the smallest squared error of inner folds, the strongest penalty among ties."""
    targets = 2.0 * subjects.labels.astype(np.float64) - 1.0
    strongest_first = sorted(alphas, reverse=True)
    held_out = [np.flatnonzero(subjects.inner == fold) for fold in np.unique(subjects.inner)]
    errors = np.mean(
        [_held_out_errors(subjects.span.gram, targets, rows, strongest_first) for rows in held_out], axis=0
    )
    alpha = strongest_first[int(np.argmin(errors))] if len(alphas) > 1 else alphas[0]
    values, vectors = np.linalg.eigh(subjects.span.gram)
    return subjects.span.model(dual_coefficients(values, vectors, targets, alpha), float(targets.mean()))


def _held_out_errors(gram: Float64, targets: Float64, rows: IntArray, alphas: Sequence[float]) -> list[float]:
    """Mean squared error of the subjects `rows`, by the ridge models of all others, of each penalty."""
    kept = np.setdiff1d(np.arange(len(targets)), rows)
    means = gram[:, kept].mean(axis=1)
    own = gram[np.ix_(kept, kept)] - means[kept, None] - means[kept] + means[kept].mean()
    values, vectors = np.linalg.eigh(own)
    foreign = gram[np.ix_(rows, kept)] - means[rows, None] - means[kept] + means[kept].mean()
    intercept = targets[kept].mean()
    scores = [foreign @ dual_coefficients(values, vectors, targets[kept], alpha) + intercept for alpha in alphas]
    return [float(np.mean(np.square(targets[rows] - found))) for found in scores]


def dual_coefficients(values: Float64, vectors: Float64, targets: Float64, alpha: float) -> Float64:
    """The coefficients a (n,) of the ridge model, from the eigenvalues and eigenvectors of the centred Gram matrix."""
    centred = targets - targets.mean()
    return np.asarray(vectors @ ((vectors.T @ centred) / (values + alpha)))


def left_out_errors(values: Float64, vectors: Float64, targets: Float64, twins: IntArray, alpha: float) -> Float64:
    """Target minus prediction (n,) of every subject, by the model trained without it and its twins."""
    n = len(targets)
    dual = dual_coefficients(values, vectors, targets, alpha)
    errors = dual / (np.square(vectors) @ (1.0 / (values + alpha)) - 1.0 / (alpha * n))
    for first in np.flatnonzero(np.bincount(twins, minlength=n) > 1):
        group = np.flatnonzero(twins == first)
        block = (vectors[group] / (values + alpha)) @ vectors[group].T - 1.0 / (alpha * n)
        errors[group] = np.linalg.solve(block, dual[group])
    return np.asarray(errors)


# Linear support vector machine on the Gram matrix, C chosen by the accuracy of inner folds.
#
# The hinge loss is a poor criterion: under strong penalties the margins shrink, and its minimum depends little on
# the sign. This method predicts the sign alone.


def train_svm(inputs: MethodInputs, settings: SVMSettings, run: Run) -> Outcome:
    """Entry point of the method `svm`."""
    fit = partial(fit_svm, costs=settings.costs)
    task = LinearTask(fit, "margin", settings.training, settings.standardise, SVM.crossing.tensors)
    return train_linear(task, inputs, run)


def fit_svm(subjects: TrainingSet, costs: Sequence[float]) -> LinearModel:
    """The support vector machine of the best cost, fitted to all the training subjects.

    Args:
        costs: ascending. Once a machine has a hard margin, larger costs have the same one.
    """
    gram, labels = subjects.span.gram, subjects.labels
    hard: dict[bytes, SVC] = {}

    def margins(cost: float, kept: IntArray, held_out: IntArray) -> Float64:
        machine = hard.get(kept.tobytes())
        if machine is None:
            machine = _machine(cost).fit(gram[np.ix_(kept, kept)], labels[kept])
            # With no dual variable at its bound, the optimality conditions hold for every larger cost.
            if np.abs(machine.dual_coef_).max() < cost:
                hard[kept.tobytes()] = machine
        return np.asarray(machine.decision_function(gram[np.ix_(held_out, kept)]))

    cost = choose_cost(costs, labels, inner_folds(labels, subjects.twins, subjects.seed), margins, _error)
    machine = _machine(cost).fit(gram, labels)
    dual = np.zeros(len(labels))
    dual[machine.support_] = machine.dual_coef_[0]
    return subjects.span.model(dual, float(machine.intercept_[0]))


def _machine(cost: float) -> SVC:
    return SVC(C=cost, kernel="precomputed", tol=1e-6)


def _error(labels: IntArray, margins: Float64) -> float:
    return float(np.mean((margins > 0) != labels))


# Logistic regression in the span of the training subjects, C chosen by the log loss of inner folds.
#
# All costs and inner folds are fitted side by side (`dual`), and the final model by Newton's method.


def train_logistic(inputs: MethodInputs, settings: LogisticSettings, run: Run) -> Outcome:
    """Entry point of the method `logistic`."""
    fit = partial(fit_logistic, costs=settings.costs)
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

    def margins(cost: float, _: IntArray, held_out: IntArray) -> Float64:
        return np.asarray(every()[held_out, place[cost, int(folds[held_out[0]])]])

    cost = choose_cost(costs, labels, folds, margins, _log_loss)
    regression = LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-10).fit(coordinates, labels)
    return subjects.span.model(back @ regression.coef_[0], float(regression.intercept_[0]))


def _log_loss(labels: IntArray, margins: Float64) -> float:
    return float(np.mean(np.logaddexp(0.0, (1 - 2 * labels) * margins)))
