"""Models of the stacked engine: one architecture in all institutions and folds, which lead every tensor."""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor


class StackedModel(Protocol):
    """A network stacked over institutions and folds, as `StackedClients` sees it."""

    def parameters(self) -> list[torch.nn.Parameter]:
        """All learnable tensors."""

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of them by name."""

    def training_step(self, labels: Tensor, chosen: Tensor) -> Tensor:
        """Fill every gradient; (M, F) losses."""

    def probabilities(self) -> Tensor:
        """(M, F, n, C) of every class by each institution's own model; float64."""

    def load(self, values: dict[str, Tensor]) -> None:
        """Take tensors (F, ...) or (M, F, ...)."""


@runtime_checkable
class DrawingModel(Protocol):
    """A model that draws in each step, keyed by the number of the step, so that a resumed run draws the same."""

    def draw_anew(self, round_index: int, epoch: int, step: int) -> None:
        """Key the draws of the next step."""
