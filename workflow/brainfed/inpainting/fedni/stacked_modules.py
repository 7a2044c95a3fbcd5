"""Copies of one module, one an institution, their tensors side by side for averaging."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Generic, TypeVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Module = TypeVar("Module", bound=nn.Module)


class StackedModules(Generic[Module]):
    """M copies of one module; their learnable tensors and buffers are views of tensors (M, ...).

    Args:
        make: builds the module; all institutions start from its weights.
        institutions: M.
    """

    def __init__(self, make: Callable[[], Module], institutions: int, device: torch.device, dtype: torch.dtype) -> None:
        first = make().to(device, dtype)
        self.modules = [first, *(deepcopy(first) for _ in range(institutions - 1))]
        self.weights = {name: _repeated(weight, institutions) for name, weight in first.named_parameters()}
        self.buffers = {
            name: _repeated(buffer, institutions)
            for name, buffer in first.named_buffers()
            if buffer.is_floating_point()
        }
        for number, module in enumerate(self.modules):
            for name, weight in module.named_parameters():
                weight.data = self.weights[name][number]
            for name, buffer in module.named_buffers():
                if name in self.buffers:
                    buffer.data = self.buffers[name][number]

    @property
    def parameters(self) -> int:
        """Number of parameters of one copy."""
        return sum(weight[0].numel() for weight in self.weights.values())

    def state(self, *, shared: bool) -> dict[str, NDArray[Any]]:
        """All tensors by name, (1, ...) where institutions share them."""
        kept = slice(0, 1) if shared else slice(None)
        return {name: stack[kept].cpu().numpy() for name, stack in (self.weights | self.buffers).items()}

    @torch.no_grad()
    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Copy the tensors of a `state`."""
        for name, stack in (self.weights | self.buffers).items():
            stack.copy_(torch.from_numpy(state[name]))


def _repeated(tensor: Tensor, times: int) -> Tensor:
    return tensor.detach().unsqueeze(0).repeat(times, *(1 for _ in tensor.shape))
