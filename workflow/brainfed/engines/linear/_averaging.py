"""One fold of a ridge regression by FedAvg: gradient steps at home, means of the weights (McMahan et al. 2017)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import content_of, run_rounds
from brainfed.engines.linear._design import Curves, FoldTask, LinearDesign, held_out_losses, margins_and_losses
from brainfed.federation import (
    Arrays,
    Federation,
    Message,
    WeightNoise,
    Wire,
    attack_of,
    defence_of,
    record_downloads,
    record_uploads,
)
from brainfed.federation.strategies import FedAvg, strongest_of_the_best
from brainfed.runtime import BoolArray, Float64

NUMBER_BYTES = 8
"""A float64."""


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
        """Copy a state."""
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


def solve(fold: FoldTask, design: LinearDesign) -> Curves:
    """Scores after each round have the penalties that are chosen at the end; patterns are in units of the design."""
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
