"""One fold of a ridge regression by conjugate gradients, equal to the solution of the pooled data.

The institutions send products of their training subjects with the server's directions.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import run_until_finished
from brainfed.engines.linear._design import Curves, FoldTask, LinearDesign, held_out_losses, margins_and_losses
from brainfed.federation import Arrays, Message, WeightNoise, Wire
from brainfed.federation.strategies import Krylov
from brainfed.runtime import BoolArray, below


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
        """The server's message, equal for all."""
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
        """Copy a state."""
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


def solve(fold: FoldTask, design: LinearDesign) -> Curves:
    """Scores after each direction have the penalties chosen at the end; patterns are in units of the design.

    Of institutions that are apart, the last scores alone are known.
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
