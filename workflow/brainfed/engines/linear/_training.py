"""Federated ridge regression over all folds of a repeat: the solution of the pooled data, from sums alone."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from brainfed.engines import sizes_of
from brainfed.engines.linear import _averaging as averaging
from brainfed.engines.linear import _conjugate_gradient as conjugate_gradient
from brainfed.engines.linear._design import Curves, FoldTask, LinearDesign, RidgeTask
from brainfed.engines.linear.kept import kept_ridge
from brainfed.federation import Ledger, record_downloads, record_uploads
from brainfed.runtime import Float64
from brainfed.runtime.jobs import Run
from brainfed.samples import (
    INNER_FOLDS,
    FittedModel,
    MethodInputs,
    Outcome,
    Scaling,
    fit_scaling,
    require_training_subjects,
)

NUMBER_BYTES = 8
"""A float64."""

SCALING = ("view-counts", "feature-sums", "site-counts", "site-sums", "squared-deviations", "squared-norms")
"""Names, whose axes the method declares; those with an empty axis are not sent."""


def scaling_axes(scaling: Scaling) -> dict[str, int]:
    """Sizes of the axes."""
    by_site = [own for own in scaling.views if own.view.centre == "site"]
    return {
        "views": len(scaling.views),
        "sites": max((len(own.means) - 1 for own in by_site), default=0),
        "site-features": sum(own.means.shape[1] for own in by_site),
        "standardised-features": sum(own.means.shape[1] for own in scaling.views if own.view.standardise),
    }


def record_scaling(inputs: MethodInputs, fold: int, ledger: Ledger) -> None:
    """Record the sums that all institutions with training subjects send, and that all institutions receive."""
    if len(inputs.institutions) == 1:
        return
    shapes = {name: tuple(ledger.axes[axis] for axis in ledger.declared[name]) for name in SCALING}
    content = {name: (shape, NUMBER_BYTES) for name, shape in shapes.items() if all(shape)}
    sizes = sizes_of(inputs.institution)
    trained = sizes_of(inputs.institution[inputs.training(fold)])
    record_uploads(ledger, {code: sizes[code] for code in trained}, content)
    record_downloads(ledger, sizes, content)


def train_ridge(task: RidgeTask, inputs: MethodInputs, run: Run) -> Outcome:
    """Train and score every fold, one after the other.

    Returns:
        Margins; `round_scores` are those after each direction or round, with the penalty that is chosen at the end.
        Patterns are in units of the features; of views, in units of the scaled features. The crossings are
        those of the first fold.

    Raises:
        UserError: a fold has no training subject.
    """
    ledger, curves = Ledger(task.shared_tensors), []
    models: list[FittedModel] = []
    parts = np.full((len(inputs.subjects), _models(inputs), len(inputs.views)), np.nan)
    for fold in range(inputs.folds):
        rows = require_training_subjects(inputs, fold)
        scaling = fit_scaling(inputs, fold, rows, standardise=task.zscore, link=inputs.link)
        if fold == 0:
            ledger = Ledger(task.shared_tensors, _axes(task, inputs, scaling))
        book = ledger if fold == 0 else ledger.blank()
        record_scaling(inputs, fold, book)
        curve, own_parts = _of_fold(FoldTask(task, inputs, run, book, fold), scaling)
        curves.append(curve)
        models += [kept_ridge(scaling, curve)] if run.keeps_models else []
        parts[inputs.tested(fold)] = own_parts[inputs.tested(fold)]
    scores, losses = _joined(inputs, curves)
    counts = {"parameters": _models(inputs) * (inputs.fold_features(0).shape[1] + 1), "rounds": len(scores)}
    patterns = np.stack([curve.patterns for curve in curves]).astype(np.float32)
    contributions = parts.astype(np.float32) if inputs.views else None
    return Outcome(
        scores[-1],
        "margin",
        scores,
        losses,
        counts,
        ledger.rows(),
        patterns,
        contributions,
        member_scores=np.where(
            (inputs.labels >= 0)[..., None], np.stack([curve.scores[-1] for curve in curves]), np.nan
        ),
        models=tuple(models),
    )


def _of_fold(fold: FoldTask, scaling: Scaling) -> tuple[Curves, Float64]:
    """The course of a fold, and the parts (n, K, V) of the views in the margins of all subjects."""
    inner, device = len(fold.task.alphas) > 1, torch.device(fold.run.device)
    design = LinearDesign.of(fold.inputs, fold.fold, scaling, inner=inner, device=device)
    solve = conjugate_gradient.solve if fold.task.solver == "conjugate_gradient" else averaging.solve
    curves = solve(fold, design)
    trained = (design.training[0].cpu().numpy() > 0) @ fold.members.T
    unseen = {code: size for code, size in fold.sizes.items() if not trained[code]}
    shape = (design.models, design.features.shape[1] + 1)
    record_downloads(fold.ledger, unseen, {"model": (shape, NUMBER_BYTES)})
    features, views = design.features.cpu().numpy(), fold.inputs.views
    parts = np.zeros((len(features), design.models, len(views)))
    for place, view in enumerate(views):
        parts[:, :, place] = features[:, view.columns] @ curves.weights[:, view.columns].T
    return replace(curves, patterns=curves.patterns * _unit(fold.inputs, scaling)), parts


def _models(inputs: MethodInputs) -> int:
    return 1 if inputs.classes == 2 else inputs.classes


def _axes(task: RidgeTask, inputs: MethodInputs, scaling: Scaling) -> dict[str, int]:
    models = _models(inputs)
    systems = models * (1 + INNER_FOLDS) if len(task.alphas) > 1 else models
    sizes = {"penalties": len(task.alphas), "directions": task.rounds, "models": models, "systems": systems}
    dimensions = int(inputs.fold_features(0).shape[1])
    return {"features": dimensions, "parameters": dimensions + 1} | sizes | scaling_axes(scaling)


def _unit(inputs: MethodInputs, scaling: Scaling) -> Float64:
    """(d,) or (1,) units of the design in units of the features; of views, in units of the scaled features."""
    first = scaling.views[0]
    if inputs.views or not first.scale:
        return np.array([np.sqrt(sum(own.view.weight for own in scaling.views))])
    return np.where(np.isfinite(first.deviation), first.deviation, 0.0) / first.scale


def _joined(inputs: MethodInputs, curves: Sequence[Curves]) -> tuple[Float64, Float64]:
    """(T, F, n, C) scores and (T, M, F) losses; a fold that ends early keeps its last."""
    longest = max(len(curve.scores) for curve in curves)
    joined = np.full((longest, *inputs.labels.shape, inputs.classes), np.nan)
    losses = np.full((longest, len(inputs.institutions), inputs.folds), np.nan)
    for fold, curve in enumerate(curves):
        after = np.minimum(np.arange(longest), len(curve.scores) - 1)
        tested = inputs.tested(fold)
        joined[:, fold, tested] = curve.scores[after][:, tested]
        losses[:, :, fold] = curve.losses[after]
    return joined, losses
