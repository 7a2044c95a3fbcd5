"""Epochs of a recurrent network on a pool of samples, of all folds at once."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.distilling.crops import Crops
from brainfed.engines.distilling.network import FoldNetwork
from brainfed.engines.distilling.pool import Pool, Step
from brainfed.federation.adam import Adam
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

NETWORK, OPTIMISER = "network/", "optimiser/"

Loss = Callable[[Tensor, Step], Tensor]
"""Logits (F, B, C) of a step's samples, and the step -> loss (F,)."""


class Trainer:
    """A network, its optimiser, and the samples that it learns from.

    Args:
        name: of the institution or the server, for messages.
        place: keys the order of samples and the dropout.
        network: trained in place.
        crops: of all subjects.
        pool: training samples.
        batch: samples a step.
        learning_rate: Adam's.
        dropout: share of the pooled vector that a step drops.
        streams: random streams of the repeat.
    """

    def __init__(
        self,
        name: str,
        place: int,
        network: FoldNetwork,
        crops: Crops,
        pool: Pool,
        batch: int,
        learning_rate: float,
        dropout: float,
        streams: Streams,
    ) -> None:
        self.name, self.place, self.network, self.crops, self.pool = name, place, network, crops, pool
        self.batch, self.dropout, self.streams = batch, dropout, streams
        # One list of tensors a fold: a fold without samples in a step takes none.
        self._models = [[each[fold] for each in network.parameters.values()] for fold in range(network.folds)]
        self.optimiser = Adam([tensor for model in self._models for tensor in model], learning_rate)

    def epochs(self, number: int, count: int, loss: Loss) -> NDArray[Any]:
        """Train `count` epochs of round `number`; (F,) mean loss of their steps, NaN in a fold without samples.

        Raises:
            UserError: a loss is not finite.
        """
        folds = self.network.folds
        if not self.pool.size:
            return np.full(folds, np.nan)
        total, taken = torch.zeros(folds, dtype=torch.float64), torch.zeros(folds, dtype=torch.float64)
        for epoch in range(count):
            factors = self._kept(number, epoch)
            for index, step in enumerate(self.pool.steps(self.batch, self.streams, self.place, number, epoch)):
                found = self._step(step, loss, None if factors is None else factors[:, index])
                active = step.weight.sum(dim=1) > 0
                total += torch.where(active, found.cpu().double(), 0.0)
                taken += active
        mean = total / taken
        wrong = [fold for fold, size in zip(self.pool.folds, self.pool.counts, strict=True)
                 if size and not math.isfinite(mean[fold])]  # fmt: skip
        if wrong:
            raise UserError(
                f"training of {self.name} (fold {wrong[0]}, round {number + 1}): expected a finite loss, found NaN or "
                "an infinite one; lower learning_rate."
            )
        return mean.numpy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Network and optimiser on the host."""
        arrays = {f"{NETWORK}{name}": array for name, array in self.network.arrays().items()}
        return arrays | {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        self.network.load(below(NETWORK, arrays))
        self.optimiser.load(below(OPTIMISER, arrays))

    def _step(self, step: Step, loss: Loss, keep: Tensor | None) -> Tensor:
        parameters = self.network.parameters.values()
        for parameter in parameters:
            parameter.requires_grad_()
        signals = self.crops.signals(self.pool.samples.gather(1, step.rows))
        found = loss(self.network.logits(signals, keep), step)
        gradients = torch.autograd.grad(found.sum(), list(parameters))
        for parameter in parameters:
            parameter.requires_grad_(False)
        for fold, weight in enumerate(step.weight):
            for place, tensor in enumerate(self._models[fold]):
                tensor.grad = gradients[place][fold] if weight.any() else None
        self.optimiser.step()
        return found.detach()

    def _kept(self, number: int, epoch: int) -> Tensor | None:
        """(F, steps, B, width) factors of the pooled vector in an epoch."""
        if self.dropout == 0:
            return None
        width = min(self.batch, self.pool.size)
        shape = (-(-self.pool.size // width), width, self.network.module.pooled)
        drawn = [
            torch.rand(shape, generator=torch.Generator().manual_seed(
                self.streams.key("dropout", self.place, number, epoch, fold)))
            for fold in self.pool.folds
        ]  # fmt: skip
        kept = torch.stack(drawn) >= self.dropout
        return (kept / (1 - self.dropout)).to(self.crops.series)


def below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The arrays under a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
