"""Federated ridge regression over all folds of a repeat: the solution of the pooled data from sums alone, or FedAvg."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import content_of, run_rounds, run_until_finished, sizes_of
from brainfed.engines.linear._design import (
    Curves,
    FoldTask,
    LinearDesign,
    RidgeTask,
    held_out_losses,
    margins_and_losses,
)
from brainfed.engines.linear.kept import kept_ridge
from brainfed.federation import (
    Arrays,
    Federation,
    Ledger,
    Message,
    WeightNoise,
    Wire,
    attack_of,
    defence_of,
    record_downloads,
    record_uploads,
)
from brainfed.federation.strategies import FedAvg, Krylov, strongest_of_the_best
from brainfed.runtime import BoolArray, Float64, below
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
"""Bytes of a float64."""

SCALING = ("view-counts", "feature-sums", "site-counts", "site-sums", "squared-deviations", "squared-norms")
"""Sums that are sent, under axes that the method declares; those with an empty axis are not."""


def scaling_axes(scaling: Scaling) -> dict[str, int]:
    """Sizes of the axes of these sums."""
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
    """The curves of a fold, and the parts (n, K, V) of the views in the margins of all subjects."""
    inner, device = len(fold.task.alphas) > 1, torch.device(fold.run.device)
    design = LinearDesign.of(fold.inputs, fold.fold, scaling, inner=inner, device=device)
    solve = solve_by_conjugate_gradient if fold.task.solver == "conjugate_gradient" else solve_by_averaging
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


# One fold of a ridge regression by FedAvg: gradient steps at home, means of the weights (McMahan et al. 2017).


class AveragingClients:
    """All institutions of one fold, each with the weights of S systems and A penalties.

    An institution takes full-batch gradient steps on |Z w + b - t|^2 / (2 n_m) + alpha |w|^2 / (2 N), with the step
    1 / (L + alpha / N). L is the largest curvature of any institution, N the number of training subjects of all. The
    intercept b is the mean target of all: the features are centred, before they are clipped.

    Args:
        local_steps: steps in a round.
        members: (M, n) masks of the institutions' subjects.
    """

    def __init__(
        self, design: LinearDesign, alphas: Sequence[float], rounds: int, local_steps: int, members: BoolArray
    ) -> None:
        self.design, self.local_steps = design, local_steps
        inside = torch.from_numpy(members).to(design.training)
        self.masks = design.training[None] * inside[:, None]
        self.counts = self.masks.sum(dim=2)
        self.samples = self.counts[:, 0].to(torch.int64)
        self.institutions = tuple(range(len(members)))
        self.alphas = torch.tensor(alphas, dtype=torch.float64)
        total = self.counts.sum(dim=0).clamp(min=1)
        self.intercepts = (design.training * design.targets).sum(dim=1) / total
        self.decay = self.alphas[None] / total[:, None]
        self.rows = [torch.nonzero(mask[0] > 0)[:, 0] for mask in self.masks]
        self.grams = [design.features[rows] @ design.features[rows].T for rows in self.rows]
        # The largest eigenvalue of Z'Z / n_m.
        self.curvature = max(
            float(torch.linalg.eigvalsh(own)[-1]) / len(own) if len(own) else 0.0 for own in self.grams
        )
        systems, d = len(design.targets), design.features.shape[1]
        self.weights = design.features.new_zeros(len(members), systems, len(alphas), d)
        self.curves = design.features.new_zeros(rounds, design.models, len(alphas), len(design.features))

    def start(self) -> dict[str, Tensor]:
        """Weights (1, S, A, d) before the first round: zeros."""
        return {"weights": torch.zeros_like(self.weights[:1])}

    def fit(self, _number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """The local steps of the chosen institutions in sequence."""
        for place in chosen:
            if self.samples[place]:
                self._descend(place)
        return {place: Message({"weights": self.weights[place, None]}, self.samples[place, None]) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the mean weights."""
        for place, message in messages.items():
            self.weights[place] = message.tensors["weights"][0]

    def score(self, number: int) -> str:
        """Record all subjects' scores by the models without an inner fold left out."""
        models = self.design.models
        scores = self.weights[0, :models] @ self.design.features.T
        self.curves[number] = scores + self.intercepts[:models, None, None]
        return f"{number + 1} means"

    def state(self, number: int) -> Arrays:
        """The curves until this round, and the weights, which are equal in all institutions."""
        return {"curves": self.curves[: number + 1].cpu().numpy(), "weights": self.weights[0].cpu().numpy()}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.curves[: number + 1] = torch.from_numpy(arrays["curves"].copy())
        self.weights[:] = torch.from_numpy(arrays["weights"].copy())

    def losses(self) -> dict[str, Tensor]:
        """Sums of squared errors (S, A) and numbers (S,) of the subjects that each system leaves out."""
        scores = self.weights[0] @ self.design.features.T + self.intercepts[:, None, None]
        return held_out_losses(self.design, scores)

    def _descend(self, place: int) -> None:
        """All local steps in n_m dimensions: w stays a multiple c of the first weights plus Z' a."""
        rows, gram = self.rows[place], self.grams[place]
        own, first = self.design.features[rows], self.weights[place]
        used = (self.masks[place][:, rows] / self.counts[place].clamp(min=1)[:, None])[:, None]
        residual = (self.design.targets[:, rows] - self.intercepts[:, None])[:, None]
        step = (1 / (self.curvature + self.decay))[:, :, None]
        kept, scores = 1 - step * self.decay[:, :, None], first @ own.T
        multiple, dual = torch.ones_like(step), torch.zeros_like(scores)
        for _ in range(self.local_steps):
            error = used * (multiple * scores + dual @ gram - residual)
            multiple, dual = kept * multiple, kept * dual - step * error
        self.weights[place] = multiple * first + dual @ own


def solve_by_averaging(fold: FoldTask, design: LinearDesign) -> Curves:
    """Fit a fold by FedAvg; all scores have the penalties that are chosen at the end, patterns the design's units."""
    task, ledger = fold.task, fold.ledger
    clients = AveragingClients(design, task.alphas, task.rounds, task.local_steps, fold.members)
    trained = {code: size for code, size in fold.sizes.items() if clients.samples[code]}
    of_systems = ((len(design.targets),), NUMBER_BYTES)
    sums = {"curvature": ((), NUMBER_BYTES), "target-sum": of_systems, "count": of_systems}
    record_uploads(ledger, trained, sums)
    record_downloads(ledger, trained, sums)
    start, streams = clients.start(), fold.inputs.streams
    server = FedAvg(clients.institutions, start, "subjects", defence=defence_of(task.robustness))
    reported = {code: int(count) for code, count in enumerate(clients.samples.tolist()) if count}
    attack = attack_of(task.robustness, Federation(len(clients.institutions), (fold.fold,), streams, start))
    wire = Wire(ledger, fold.sizes, WeightNoise(0.0, streams, (fold.fold,)), reported, attack=attack)
    checkpoint = fold.run.checkpoint.part(f"fold-{fold.fold}")
    run_rounds(clients, server, wire, task.rounds, fold.inputs.link, checkpoint, fold.progress)
    chosen = torch.zeros(design.models, dtype=torch.int64)
    if len(task.alphas) > 1:
        losses = clients.losses()
        record_uploads(ledger, trained, content_of(losses))
        record_downloads(ledger, trained, {"penalty": ((design.models,), NUMBER_BYTES)})
        chosen = strongest_of_the_best(losses["loss"], losses["held-out"], design.models)
    models = torch.arange(design.models)
    every = clients.curves[:, models, chosen]
    record_uploads(ledger, trained, {"last-product": ((design.models, design.features.shape[1]), NUMBER_BYTES)})
    return Curves(
        *margins_and_losses(design, fold.members, every),
        _patterns(design, clients.weights[0][models, chosen]),
        clients.weights[0][models, chosen].cpu().numpy(),
        clients.intercepts[models].cpu().numpy(),
    )


def _patterns(design: LinearDesign, weights: Tensor) -> Float64:
    """(C, d) cov(Z) w / sd(Z w) over all training subjects, from the sum of their products Z' Z w."""
    mask = design.training[: design.models]
    scores = mask * (weights @ design.features.T)
    count = mask.sum(dim=1, keepdim=True)
    scores = mask * (scores - scores.sum(dim=1, keepdim=True) / count)
    deviation = torch.square(scores).sum(dim=1, keepdim=True).div(count).sqrt()
    patterns = (scores @ design.features) / (count * deviation.clamp(min=1e-300))
    return np.asarray(patterns.cpu().numpy())


# One fold of a ridge regression by conjugate gradients, equal to the solution of the pooled data.
#
# The institutions send products of their training subjects with the server's directions.


class KrylovClients:
    """All institutions of one fold; their replies are summed in one product.

    Args:
        rounds: largest number of directions K.
        members: (M, n) masks of the institutions' subjects.
    """

    def __init__(self, design: LinearDesign, rounds: int, members: BoolArray) -> None:
        self.design = design
        self.projections = design.targets.new_zeros(rounds, *design.targets.shape)
        self.size = 0
        self.samples = (torch.from_numpy(members) & (design.training[0].cpu() > 0)).sum(dim=1)
        self.institutions = tuple(range(len(members)))
        self._received: dict[str, Tensor] = {}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """The moments, the products with the last directions, or the losses of held-out subjects."""
        if number == 0:
            tensors = self._moments()
        elif "coefficients" in self._received:
            scores = self.scores(self._received["coefficients"], self._received["intercepts"])
            tensors = held_out_losses(self.design, scores)
        elif "direction" in self._received:
            tensors = {"product": self._product(self._received["direction"])}
        else:
            tensors = {"last-product": self._product(self._received["last-direction"])}
        summed = {name: tensor[None] for name, tensor in tensors.items()}
        return {code: Message(summed, self.samples[code, None], summed=True) for code in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Keep the server's message, which is the same for all."""
        for message in list(messages.values())[:1]:
            self._received = {name: tensor[0] for name, tensor in message.tensors.items()}

    def score(self, _number: int) -> str:
        """Nothing to measure before the end."""
        return f"{self.size} directions"

    def state(self, _number: int) -> Arrays:
        """The products of all subjects with the directions, and the last message."""
        received = {f"received/{name}": tensor.cpu().numpy() for name, tensor in self._received.items()}
        return {"projections": self.projections[: self.size].cpu().numpy(), **received}

    def load(self, _number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        projections = torch.from_numpy(arrays["projections"].copy())
        self.size = len(projections)
        self.projections[: self.size] = projections
        received = below("received/", arrays).items()
        self._received = {name: torch.from_numpy(array.copy()).to(self.design.features) for name, array in received}

    def scores(self, coefficients: Tensor, intercepts: Tensor) -> Tensor:
        """(s, A, n) scores of all subjects by the first s systems.

        Args:
            coefficients: (s, A, K) of the directions in the weights.
            intercepts: (s, A).
        """
        projections = self.projections[:, : len(coefficients)]
        return torch.einsum("ksn,sak->san", projections, coefficients) + intercepts[:, :, None]

    def _moments(self) -> dict[str, Tensor]:
        design = self.design
        labelled = design.training * design.targets
        return {
            "count": design.training.sum(dim=1),
            "feature-sum": design.training @ design.features,
            "target-sum": labelled.sum(dim=1),
            "feature-target-sum": labelled @ design.features,
        }

    def _product(self, directions: Tensor) -> Tensor:
        """(s, d) sums over the training subjects of z (z' q), for the directions q (s, d) of the first s systems."""
        systems = len(directions)
        projected = directions @ self.design.features.T
        self.projections[self.size, :systems] = projected
        self.size += 1
        return (self.design.training[:systems] * projected) @ self.design.features


logger = logging.getLogger(__name__)


def solve_by_conjugate_gradient(fold: FoldTask, design: LinearDesign) -> Curves:
    """Solve a fold; all scores have the penalties that are chosen at the end, patterns the units of the design.

    Where institutions are apart, only the last scores are known.
    """
    task = fold.task
    clients = KrylovClients(design, task.rounds, fold.members)
    link = fold.inputs.link
    krylov = Krylov(clients.institutions, design.models, task.alphas, task.rounds, task.tolerance)
    wire = Wire(fold.ledger, fold.sizes, WeightNoise(0.0, fold.inputs.streams, (fold.fold,)))
    part, most = fold.run.checkpoint.part(f"fold-{fold.fold}"), task.rounds + 2
    published = run_until_finished(clients, krylov, wire, most, link, part, fold.progress_at_most).published()
    fold.run.progress(fold.fold + 1, fold.inputs.folds, "fold")
    if (error := float(published["error"])) > task.tolerance:
        logger.warning(
            "fold %d: %d directions leave an error of up to %.1e in a score, expected %.1e; raise `rounds`",
            fold.fold + 1,
            int(published["directions"]),
            error,
            task.tolerance,
        )
    if link.apart:
        # The coordinator alone has what the scores after fewer directions need.
        weights, intercepts = (
            torch.from_numpy(published[name].copy()).to(design.features) for name in ("weights", "intercepts")
        )
        every = [weights @ design.features.T + intercepts[:, None]]
    else:
        penalties, spaces = krylov.own_penalties(), krylov.spaces
        every = [clients.scores(*spaces.solution(penalties, size))[:, 0] for size in range(1, spaces.size + 1)]
    models = published["patterns"], published["weights"], published["intercepts"]
    return Curves(*margins_and_losses(design, fold.members, every), *models)
