"""Federated ridge regression over all folds of a repeat: the solution of the pooled data, from sums alone."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.linear.clients import KrylovClients
from brainfed.engines.linear.crossings import record_scaling, scaling_axes
from brainfed.engines.linear.design import LinearDesign
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.privacy import WeightNoise
from brainfed.federation.sharing import record_downloads
from brainfed.federation.strategies.krylov import Krylov
from brainfed.federation.wire import Wire
from brainfed.runtime.jobs.run import Run
from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.inner_folds import INNER_FOLDS
from brainfed.samples.inputs import MethodInputs, Outcome
from brainfed.samples.training_folds import require_training_subjects
from brainfed.samples.view_scaling import Scaling, fit_scaling

WEIGHT_BYTES = 8
"""A weight, float64."""


@dataclass(frozen=True)
class RidgeTask:
    """A federated ridge regression.

    Attributes:
        alphas: penalties to choose from, for training subjects of mean squared norm 1; ascending.
        rounds: most directions of a fold.
        tolerance: see `Krylov`.
        zscore: whether columns are z-scored by the moments of all training subjects; views have their own settings.
        shared_tensors: tensors that the method declares to leave an institution.
    """

    alphas: tuple[float, ...]
    rounds: int
    tolerance: float
    zscore: bool
    shared_tensors: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Curves:
    """Course of one fold.

    Attributes:
        scores: (T, n, C) of all subjects after each direction.
        losses: (T, M) mean squared errors of training subjects after each direction.
        patterns: (K, d) of the K models, in units of the features; of several views, in units of the scaled features.
    """

    scores: NDArray[np.float64]
    losses: NDArray[np.float64]
    patterns: NDArray[np.float32]


def train_ridge(task: RidgeTask, inputs: MethodInputs, run: Run) -> Outcome:
    """Train and score every fold, one after the other.

    Returns:
        Margins; `round_scores` are those of the first k directions, with the penalty that is chosen at the end. The
        crossings are those of the first fold.

    Raises:
        UserError: a fold has no training subject.
    """
    ledger, curves = Ledger(task.shared_tensors), []
    for fold in range(inputs.folds):
        scaling = fit_scaling(inputs, fold, require_training_subjects(inputs, fold), standardise=task.zscore)
        if fold == 0:
            ledger = Ledger(task.shared_tensors, _axes(task, inputs, scaling))
        book = ledger if fold == 0 else ledger.blank()
        record_scaling(inputs, fold, book)
        curves.append(_solve(task, inputs, run, scaling, book, fold))
    scores, losses = _joined(inputs, curves)
    counts = {"parameters": _models(inputs) * (inputs.fold_features(0).shape[1] + 1), "rounds": len(scores)}
    patterns = np.stack([curve.patterns for curve in curves])
    return Outcome(scores[-1], "margin", scores, losses, counts, ledger.rows(), patterns)


def _models(inputs: MethodInputs) -> int:
    return 1 if inputs.classes == 2 else inputs.classes


def _axes(task: RidgeTask, inputs: MethodInputs, scaling: Scaling) -> dict[str, int]:
    models = _models(inputs)
    systems = models * (1 + INNER_FOLDS) if len(task.alphas) > 1 else models
    sizes = {"penalties": len(task.alphas), "directions": task.rounds, "models": models, "systems": systems}
    dimensions = int(inputs.fold_features(0).shape[1])
    return {"features": dimensions, "parameters": dimensions + 1} | sizes | scaling_axes(scaling)


def _solve(task: RidgeTask, inputs: MethodInputs, run: Run, scaling: Scaling, ledger: Ledger, fold: int) -> Curves:
    """Solve one fold."""
    design = LinearDesign.of(inputs, fold, scaling, inner=len(task.alphas) > 1, device=torch.device(run.device))
    institutions = len(inputs.institutions)
    clients = KrylovClients(design, task.rounds, institutions)
    server = Krylov(clients.institutions, design.models, task.alphas, task.rounds, task.tolerance)
    sizes = {code: len(inputs.members(code)) for code in clients.institutions}
    wire = Wire(ledger, sizes, WeightNoise(0.0, inputs.streams, (fold,)))
    part = run.checkpoint.part(f"fold-{fold}")
    progress = _over_folds(run.progress, fold, inputs.folds)
    federate(clients, server, wire, task.rounds + 2, part, progress, finished=server.finished)
    unseen = {code: size for code, size in sizes.items() if not clients.samples[code]}
    shape = (design.models, design.features.shape[1] + 1)
    record_downloads(ledger, unseen, {"model": (shape, WEIGHT_BYTES)})
    patterns = server.spaces.patterns(server.own_penalties())[:, 0].cpu().numpy()
    scores, losses = _curves(inputs, design, clients, server)
    return Curves(scores, losses, (patterns * _unit(scaling)).astype(np.float32))


def _curves(
    inputs: MethodInputs, design: LinearDesign, clients: KrylovClients, server: Krylov
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores and losses after each direction, with the penalties that are chosen at the end."""
    members = torch.from_numpy(np.arange(len(inputs.institutions))[:, None] == inputs.institution).double()
    used, targets = design.training[0].cpu() * members, design.targets[: design.models].cpu()
    found, losses = [], []
    for size in range(1, server.spaces.size + 1):
        scores = clients.scores(*server.spaces.solution(server.own_penalties(), size))[:, 0].cpu()
        squared = torch.square(scores - targets).mean(dim=0)
        losses.append(((squared * used).sum(dim=1) / used.sum(dim=1)).numpy())
        found.append(_of_classes(scores))
    return np.stack(found), np.stack(losses)


def _unit(scaling: Scaling) -> NDArray[np.float64]:
    """(d,) or (1,) units of the design in units of the features; of several views, in units of the scaled features."""
    first, *others = scaling.views
    if others or not first.scale:
        return np.array([np.sqrt(sum(own.view.weight for own in scaling.views))])
    return np.where(np.isfinite(first.deviation), first.deviation, 0.0) / first.scale


def _of_classes(scores: Tensor) -> NDArray[np.float64]:
    """(n, classes) margins from the scores (C, n) of the models."""
    values = scores.numpy()
    return of_two_classes(values[0], "margin") if len(values) == 1 else values.T


def _joined(inputs: MethodInputs, curves: Sequence[Curves]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def _over_folds(progress: Callable[[int, int, str], None], fold: int, folds: int) -> Callable[[int, int, str], None]:
    """Progress of one fold as a part of all."""

    def reported(done: int, total: int, what: str) -> None:
        progress(fold * total + done, folds * total, f"fold {fold + 1}, {what}")

    return reported
