"""Local and central training of a linear model over all folds of a repeat.

Local: a model an institution, with its own standardisation; a subject of an institution without
training subjects in the fold (leave-one-site-out) gets the mean score over all local models.
Central: all training subjects are pooled, as one institution. Where the training subjects are of one
class, or all identical, the score is constant: the share of patients (minus that of controls, for a
margin).

Of more than two classes every class has a model against the rest, with a penalty of its own (Rifkin and Klautau 2004,
J. Machine Learning Research 5); the probabilities of a subject are divided by their sum.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import logit

from brainfed.engines import record_pooling, sizes_of
from brainfed.federation import Ledger, record_help
from brainfed.methods.linear._dual import LinearModel, TrainingSpan, training_span
from brainfed.methods.linear.kept import kept_linear, scores_of_models
from brainfed.runtime import BoolArray, Float64, FloatArray, IntArray, ScoreKind
from brainfed.runtime.jobs import Run
from brainfed.samples import (
    FittedModel,
    MethodInputs,
    Outcome,
    View,
    first_view,
    fit_scaling,
    institution_folds,
    require_training_subjects,
    scaled,
    twin_groups,
)

MODEL_BYTES = 8
"""A weight of a linear model, float64."""


@dataclass(frozen=True)
class TrainingSet:
    """Input of one fit.

    Attributes:
        span: the n training subjects.
        labels: (n,) in {0, 1}, both present; 1 for one class if there are more than two.
        twins: (n,) position of the first identical subject.
        seed: seed of the inner folds.
        inner: (n,) inner folds that the institutions deal for themselves; empty where the task reads none.
    """

    span: TrainingSpan
    labels: IntArray
    twins: IntArray
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
    twins = twin_groups(first_view(inputs, fold)[rows])
    alike = labels.min() == labels.max() or twins.max() == 0
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
        return task.fit(TrainingSet(span, own, twins, seed, inner))

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
