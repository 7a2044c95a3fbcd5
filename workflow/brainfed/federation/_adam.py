"""Adam (Kingma and Ba 2015) over a fixed list of tensors, by torch's own functional form.

`torch.optim.Adam` is the same arithmetic, but building one imports torch's compiler: a second at the start of
every job. The fused form reads and writes each number once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim.adam import adam

BETAS = (0.9, 0.999)
EPSILON = 1e-8
STATE = ("step", "exp_avg", "exp_avg_sq")


class Adam:
    """Adam's moments of some parameters, initially zero; the L2 penalty `weight_decay` is added to the gradient."""

    def __init__(self, parameters: Sequence[Tensor], learning_rate: float, weight_decay: float = 0.0) -> None:
        self.parameters = list(parameters)
        self.learning_rate, self.weight_decay = learning_rate, weight_decay
        self._steps = [torch.zeros((), dtype=torch.float32, device=each.device) for each in self.parameters]
        self._means, self._squares = ([torch.zeros_like(each) for each in self.parameters] for _ in range(2))

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        moved = [index for index, parameter in enumerate(self.parameters) if parameter.grad is not None]
        adam(
            [self.parameters[index] for index in moved],
            # The fused form reads memory in the order of the parameter.
            [gradient.contiguous() for index in moved if (gradient := self.parameters[index].grad) is not None],
            [self._means[index] for index in moved],
            [self._squares[index] for index in moved],
            [],
            [self._steps[index] for index in moved],
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=self.learning_rate,
            weight_decay=self.weight_decay,
            eps=EPSILON,
            maximize=False,
        )

    def reset(self) -> None:
        """Set all moments to zero."""
        for tensors in self._state().values():
            for tensor in tensors:
                tensor.zero_()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The state as `{index}/{name}`, on the host."""
        return {
            f"{index}/{name}": tensor.cpu().numpy()
            for name, tensors in self._state().items()
            for index, tensor in enumerate(tensors)
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state from `arrays`."""
        for name, tensors in self._state().items():
            for index, tensor in enumerate(tensors):
                tensor.copy_(torch.from_numpy(arrays[f"{index}/{name}"]))

    def _state(self) -> dict[str, list[Tensor]]:
        return dict(zip(STATE, (self._steps, self._means, self._squares), strict=True))
