"""Memory that steps write their activations into: new pages would cost a quarter of a round."""

import torch
from torch import Tensor


class Workspace:
    """Named buffers that grow to the largest size asked for.

    Args:
        like: a tensor of the wanted device and precision.
    """

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._held: dict[object, Tensor] = {}

    def take(self, name: object, rows: int, width: int) -> Tensor:
        """(rows, width) uninitialised numbers; the same memory for the same name."""
        held = self._held.get(name)
        if held is None or held.numel() < rows * width:
            held = self._held[name] = torch.empty(rows * width, dtype=self._like.dtype, device=self._like.device)
        return held[: rows * width].view(rows, width)
