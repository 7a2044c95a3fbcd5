"""Ridge classifier in the dual, its penalty chosen by exact leave-one-out.

Targets t = +1 (patient) and -1. For centred rows of Gram matrix K the model is b = mean(t) and
a = G t, where G = (K + alpha I)^-1 within the vectors that sum to 0. Leaving out the subjects g
changes their error to (G_gg)^-1 a_g (Cawley 2006, "Leave-one-out cross-validation based model
selection criteria for weighted LS-SVMs", eq. 10), so one eigendecomposition serves all penalties.
A subject is left out together with its twins.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from brainfed.methods.linear.declaration import RIDGE, RidgeSettings
from brainfed.methods.linear.dual import LinearModel
from brainfed.methods.linear.fitting import LinearTask, TrainingSet, train_linear
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import IntArray, MethodInputs, Outcome

Float64 = NDArray[np.float64]


def train(inputs: MethodInputs, settings: RidgeSettings, run: Run) -> Outcome:
    """Entry point of the method `ridge`."""

    inner = settings.choice == "inner_folds"

    def fit(subjects: TrainingSet) -> LinearModel:
        if inner:
            return fit_ridge_by_inner_folds(subjects, settings.alphas)
        return fit_ridge(subjects, settings.alphas)

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
    held = [np.flatnonzero(subjects.inner == fold) for fold in np.unique(subjects.inner)]
    errors = np.mean([_held_out_errors(subjects.span.gram, targets, rows, strongest_first) for rows in held], axis=0)
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
