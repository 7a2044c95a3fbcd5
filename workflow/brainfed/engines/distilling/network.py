"""One recurrent network a fold, side by side: parameters with the folds first."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.distilling.crops import Crops
from brainfed.engines.distilling.pool import Pool
from brainfed.engines.parameter_names import wire_name
from brainfed.models.classifier import class_probabilities
from brainfed.models.recurrent import Kind, RecurrentClassifier
from brainfed.models.recurrent_folds import Workspace, fold_logits
from brainfed.runtime.streams import Streams

BLOCK = 512
"""Samples of a fold that are scored at a time."""


class FoldNetwork:
    """F networks of one kind.

    Args:
        kind: `lstm`, `gru`, `bilstm` or `slstm`.
        module: of that kind; its weights are not read.
        folds: number of networks F.
        device: that trains.
        precision: of the parameters.
    """

    def __init__(
        self, kind: Kind, module: RecurrentClassifier, folds: int, device: str, precision: torch.dtype
    ) -> None:
        self.kind, self.module, self.folds = kind, module, folds
        self._workspace = Workspace()
        self.parameters = {
            name: torch.zeros((folds, *parameter.shape), device=device, dtype=precision)
            for name, parameter in module.named_parameters()
        }

    def start(self, streams: Streams, *parts: int | str) -> None:
        """Draw the initial weights of every fold."""
        for fold in range(self.folds):
            self.module.start(streams, *parts, fold)
            for name, parameter in self.module.named_parameters():
                self.parameters[name][fold] = parameter.detach()

    def logits(self, signals: Tensor, keep: Tensor | None = None) -> Tensor:
        """(F, B, C) of signals (F, B, T, R)."""
        return fold_logits(self.kind, self.parameters, signals, keep, self._workspace)

    @torch.no_grad()
    def scores(self, crops: Crops, pool: Pool) -> Tensor:
        """(F, P, C) logits of a pool."""
        blocks = [self.logits(crops.signals(pool.samples[:, part])) for part in pool.blocks(BLOCK)]
        return torch.cat(blocks, dim=1)

    @torch.no_grad()
    def probabilities(self, crops: Crops, pool: Pool) -> NDArray[Any]:
        """(F, subjects, C) of the subjects of a pool, float64: means over their crops."""
        found = class_probabilities(self.scores(crops, pool))
        by_subject = found.view(self.folds, -1, crops.count, found.shape[-1])
        return np.asarray(by_subject.mean(dim=2).cpu().numpy())

    def shared(self) -> dict[str, Tensor]:
        """Copies of the parameters by name on the wire."""
        return {self.wire(name): parameter.detach().clone() for name, parameter in self.parameters.items()}

    def wire(self, parameter: str) -> str:
        """Name on the wire: networks of several kinds differ in their shapes."""
        return f"{self.kind}.{wire_name(parameter)}"

    @torch.no_grad()
    def receive(self, tensors: Mapping[str, Tensor]) -> None:
        """Copy parameters by name on the wire."""
        for name, parameter in self.parameters.items():
            parameter.copy_(tensors[self.wire(name)])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The parameters on the host."""
        return {name: parameter.detach().cpu().numpy() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy parameters by their own names."""
        for name, parameter in self.parameters.items():
            parameter.copy_(torch.from_numpy(arrays[name]))
