"""Adam (Kingma and Ba 2015) on parameters that hold one model a fold; a step may leave folds out."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import BETAS, EPSILON

STEPS, MEANS, SQUARES = "steps", "means/", "squares/"


class FoldAdam:
    """Moments of parameters (F, ...) and the steps of each fold.

    Args:
        parameters: name -> (F, ...), updated in place.
        learning_rate: of all parameters.
    """

    def __init__(self, parameters: Mapping[str, Tensor], learning_rate: float) -> None:
        self.parameters, self.learning_rate = dict(parameters), learning_rate
        first = next(iter(self.parameters.values()))
        self._steps = torch.zeros(first.shape[0], dtype=first.dtype, device=first.device)
        self._means, self._squares = (
            {name: torch.zeros_like(each, requires_grad=False) for name, each in self.parameters.items()}
            for _ in range(2)
        )

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], active: Tensor) -> None:
        """Update the active folds.

        Args:
            gradients: in the order of the parameters.
            active: (F,) bool; a fold that is left out keeps parameters and moments.
        """
        moving = active.to(self._steps)
        self._steps += moving
        steps = self._steps.clamp(min=1)
        first, second = (1 - beta**steps for beta in BETAS)
        for (name, parameter), gradient in zip(self.parameters.items(), gradients, strict=True):
            shape = (-1, *(1 for _ in parameter.shape[1:]))
            on = moving.view(shape)
            mean, square = self._means[name], self._squares[name]
            mean.add_((gradient - mean) * on, alpha=1 - BETAS[0])
            square.add_((gradient.square() - square) * on, alpha=1 - BETAS[1])
            change = (mean / first.view(shape)) / ((square / second.view(shape)).sqrt() + EPSILON)
            parameter.sub_(change * on, alpha=self.learning_rate)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state on the host."""
        return {name: tensor.cpu().numpy() for name, tensor in self._state().items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
        for name, tensor in self._state().items():
            tensor.copy_(torch.from_numpy(arrays[name]))

    def _state(self) -> dict[str, Tensor]:
        means = {f"{MEANS}{name}": tensor for name, tensor in self._means.items()}
        return {STEPS: self._steps, **means, **{f"{SQUARES}{name}": tensor for name, tensor in self._squares.items()}}
