"""Local and central ridge, support vectors and logistic regression, each with an inner choice of its penalty."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import product
from typing import Literal

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from brainfed.engines import record_pooling, sizes_of
from brainfed.federation import Ledger, record_help
from brainfed.methods.linear._dual import Fits, LinearModel, TrainingSpan, training_span
from brainfed.methods.linear.declaration import LOGISTIC, RIDGE, SVM, LogisticSettings, RidgeSettings, SVMSettings
from brainfed.methods.linear.kept import kept_linear, scores_of_models
from brainfed.runtime import BoolArray, Float64, FloatArray, IntArray, ScoreKind
from brainfed.runtime.jobs import Run
from brainfed.samples import (
    FittedModel,
    MethodInputs,
    Outcome,
    View,
    choose_cost,
    duplicate_groups,
    first_view,
    fit_scaling,
    inner_folds,
    institution_folds,
    require_training_subjects,
    scaled,
)

# Local and central training of a linear model over all folds of a repeat.
#
# Local: a model an institution, with its own standardisation; a subject of an institution without training subjects in
# the fold (leave-one-site-out) gets the mean score over all local models. Central: all training subjects are pooled, as
# one institution. Where the training subjects are of one class, or all identical, the score is constant: the share of
# patients (minus that of controls, for a margin).
#
# Of more than two classes every class has a model against the rest, with a penalty of its own (Rifkin and Klautau 2004,
# J. Machine Learning Research 5); the probabilities of a subject are divided by their sum.

MODEL_BYTES = 8
"""A weight of a linear model, float64."""


@dataclass(frozen=True)
class TrainingSet:
    """Input of one fit.

    Attributes:
        span: the n training subjects.
        labels: (n,) in {0, 1}, both present; 1 for one class if there are more than two.
        duplicates: (n,) position of the first identical subject.
        seed: seed of the inner folds.
        inner: (n,) inner folds that the institutions deal for themselves; empty where the task reads none.
    """

    span: TrainingSpan
    labels: IntArray
    duplicates: IntArray
    seed: int
    inner: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


Models = tuple[LinearModel, ...]
"""The model of class 1 for two classes, else one model a class."""
Fit = Callable[[TrainingSet], LinearModel]


@dataclass(frozen=True)
class LinearTask:
    """A kind of linear model and its topology.

    Attributes:
        fit: from the training subjects of two groups to a model.
        kind: `probability` passes the model's score through the logistic function.
        training: `local` or `central`.
        standardise: `institution` or `none`; views have settings of their own.
        shared_tensors: tensors that the method declares to leave an institution.
        inner_folds: whether the fit reads inner folds of the institutions.
    """

    fit: Fit
    kind: ScoreKind
    training: Literal["local", "central"]
    standardise: Literal["institution", "none"]
    shared_tensors: Mapping[str, tuple[str, ...]]
    inner_folds: bool = False


def train_linear(task: LinearTask, inputs: MethodInputs, run: Run) -> Outcome:
    """Train and score every fold.

    Raises:
        UserError: a fold has no training subject.
    """
    dimensions = int(inputs.fold_features(0).shape[1])
    parameters = (dimensions + 1) * len(_modelled(inputs))
    ledger = Ledger(task.shared_tensors, {"features": dimensions, "parameters": parameters})
    pools = inputs.institution
    if task.training == "central":
        pools = np.zeros_like(pools)
        record_pooling(inputs, ledger)
    scores = np.full((*inputs.labels.shape, inputs.classes), np.nan)
    member_scores, kept = scores.copy(), list[FittedModel]()
    patterns = np.zeros((inputs.folds, len(_modelled(inputs)), dimensions), dtype=np.float32)
    parts = np.full((len(inputs.subjects), len(_modelled(inputs)), len(inputs.views)), np.nan)
    for fold in range(inputs.folds):
        training = require_training_subjects(inputs, fold)
        models = {pool: _models(task, inputs, fold, pools == pool) for pool in np.unique(pools[training]).tolist()}
        _score(task, inputs, fold, pools, models, scores[fold], parts, ledger)
        for pool, own in models.items():
            rows = training & (pools == pool)
            member_scores[fold, rows] = _response(task, own, _features(inputs, fold, rows)[rows])
        patterns[fold] = _patterns(list(models.values()), dimensions)
        if run.keeps_models:
            kept.append(kept_linear(inputs.fold_features(fold), training, pools, models))
        run.progress(fold + 1, inputs.folds, "fold")
    counts = {"parameters": parameters}
    return Outcome(
        scores, task.kind, counts=counts, crossings=ledger.rows(), patterns=patterns,
        contributions=parts.astype(np.float32) if inputs.views else None, member_scores=member_scores,
        models=tuple(kept),
    )  # fmt: skip


def _modelled(inputs: MethodInputs) -> list[int]:
    """The classes that have a model."""
    return [1] if inputs.classes == 2 else list(range(inputs.classes))


def _models(task: LinearTask, inputs: MethodInputs, fold: int, pool: BoolArray) -> Models:
    rows = pool & inputs.training(fold)
    features = _features(inputs, fold, rows)
    labels = inputs.labels[fold, rows]
    duplicates = duplicate_groups(first_view(inputs, fold)[rows])
    alike = labels.min() == labels.max() or duplicates.max() == 0
    institutions = np.unique(inputs.institution[pool])
    owner = inputs.institutions[institutions[0]] if len(institutions) == 1 else "pool"
    seed = inputs.streams.key("inner folds", owner, fold)
    norm = float(np.sqrt(sum(view.weight for view in inputs.views)))
    standardise = "none" if inputs.views else task.standardise
    span = None if alike else training_span(features, rows, standardise, norm)
    inner = institution_folds(inputs, fold)[rows] if task.inner_folds else np.zeros(0, dtype=np.int64)

    def model(own: IntArray) -> LinearModel:
        if span is None or own.min() == own.max():
            share = float(own.mean())
            constant = 2 * share - 1 if task.kind == "margin" else float(logit(share))
            return LinearModel(np.zeros(features.shape[1]), constant)
        return task.fit(TrainingSet(span, own, duplicates, seed, inner))

    return tuple(model((labels == code).astype(np.int64)) for code in _modelled(inputs))


def _patterns(models: Sequence[Models], dimensions: int) -> Float64:
    """(K, d) patterns of the K modelled classes: the mean over the pools whose score varies; 0 without one."""
    patterns = np.zeros((len(models[0]), dimensions))
    for place, own in enumerate(zip(*models, strict=True)):
        varying = [model.pattern for model in own if model.pattern is not None]
        if varying:
            patterns[place] = np.mean(varying, axis=0)
    return patterns


def _features(inputs: MethodInputs, fold: int, rows: BoolArray) -> FloatArray:
    """(n, d) features of a fold; several views as their training subjects `rows` scale them."""
    return scaled(inputs, fold, rows) if inputs.views else inputs.fold_features(fold)


def _score(
    task: LinearTask,
    inputs: MethodInputs,
    fold: int,
    pools: IntArray,
    models: Mapping[int, Models],
    scores: Float64,
    parts: Float64,
    ledger: Ledger,
) -> None:
    """Fill in the scores (n, C) of the subjects tested in a fold, and the parts (n, K, V) of views in their margins."""

    def response(pool: int, rows: IntArray) -> tuple[Float64, Float64]:
        own = (pools == pool) & inputs.training(fold)
        features = _features(inputs, fold, own)[rows]
        return _response(task, models[pool], features), _parts(models[pool], features, inputs.views)

    for pool in np.unique(pools[inputs.tested(fold)]).tolist():
        rows = np.flatnonzero(inputs.tested(fold) & (pools == pool))
        if pool in models:
            scores[rows], parts[rows] = response(pool, rows)
            continue
        by_helper = [response(helper, rows) for helper in models]
        scores[rows], parts[rows] = (np.mean(values, axis=0) for values in zip(*by_helper, strict=True))
        if not ledger.rows():
            sizes = sizes_of(pools)
            helpers = {helper: sizes[helper] for helper in models}
            parameters = (inputs.fold_features(fold).shape[1] + 1) * len(_modelled(inputs))
            record_help(ledger, helpers, {pool: sizes[pool]}, {"model": ((parameters,), MODEL_BYTES)})
            if inputs.views:
                _record_scaling(inputs, fold, helpers, {pool: sizes[pool]}, ledger)


def _parts(models: Models, features: FloatArray, views: Sequence[View]) -> Float64:
    """Parts (n, K, V) of the views in the margins of the features (n, d), but for the models' constants."""
    parts = np.zeros((len(features), len(models), len(views)))
    for place, view in enumerate(views):
        weights = np.stack([model.weights[view.columns] for model in models], axis=1)
        parts[:, :, place] = features[:, view.columns] @ weights
    return parts


def _record_scaling(
    inputs: MethodInputs, fold: int, helpers: Mapping[int, int], helped: Mapping[int, int], ledger: Ledger
) -> None:
    """Record the scaling of views that goes with each helper's model: means, deviations and sizes."""
    scaling = fit_scaling(inputs, fold, inputs.training(fold))
    entries = sum(own.means.size + own.deviation.size + 1 for own in scaling.views)
    ledger.axes = {**ledger.axes, "scaling": entries}
    record_help(ledger, helpers, helped, {"scaling": ((entries,), MODEL_BYTES)})


def _response(task: LinearTask, models: Models, features: FloatArray) -> Float64:
    """Scores (n, C) of the features (n, d)."""
    return scores_of_models(np.column_stack([model.scores(features) for model in models]), task.kind)


# Ridge classifier in the dual, its penalty chosen by exact leave-one-out.
#
# Targets t = +1 (patient) and -1. For centred rows of Gram matrix K the model is b = mean(t) and
# a = G t, where G = (K + alpha I)^-1 within the vectors that sum to 0. Leaving out the subjects g
# changes their error to (G_gg)^-1 a_g (Cawley 2006, "Leave-one-out cross-validation based model
# selection criteria for weighted LS-SVMs", eq. 10), so one eigendecomposition serves all penalties.
# A subject is left out together with its duplicates.


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
        np.mean(left_out_errors(values, vectors, targets, subjects.duplicates, alpha) ** 2) for alpha in strongest_first
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
    return [float(np.mean(np.square(targets[rows] - predicted))) for predicted in scores]


def dual_coefficients(values: Float64, vectors: Float64, targets: Float64, alpha: float) -> Float64:
    """The coefficients a (n,) of the ridge model, from the eigenvalues and eigenvectors of the centred Gram matrix."""
    centred = targets - targets.mean()
    return np.asarray(vectors @ ((vectors.T @ centred) / (values + alpha)))


def left_out_errors(values: Float64, vectors: Float64, targets: Float64, duplicates: IntArray, alpha: float) -> Float64:
    """Target minus prediction (n,) of every subject, by the model trained without it and its duplicates."""
    n = len(targets)
    dual = dual_coefficients(values, vectors, targets, alpha)
    errors = dual / (np.square(vectors) @ (1.0 / (values + alpha)) - 1.0 / (alpha * n))
    for first in np.flatnonzero(np.bincount(duplicates, minlength=n) > 1):
        group = np.flatnonzero(duplicates == first)
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

    cost = choose_cost(costs, labels, inner_folds(labels, subjects.duplicates, subjects.seed), margins, _error)
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
# All costs and inner folds are fitted side by side (`_dual`), and the final model by Newton's method.


def train_logistic(inputs: MethodInputs, settings: LogisticSettings, run: Run) -> Outcome:
    """Entry point of the method `logistic`."""
    fit = partial(fit_logistic, costs=settings.costs)
    task = LinearTask(fit, "probability", settings.training, settings.standardise, LOGISTIC.crossing.tensors)
    return train_linear(task, inputs, run)


def fit_logistic(subjects: TrainingSet, costs: Sequence[float]) -> LinearModel:
    """The logistic regression of the best cost, fitted to all the training subjects."""
    coordinates, back = subjects.span.coordinates()
    labels, folds = subjects.labels, inner_folds(subjects.labels, subjects.duplicates, subjects.seed)
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
