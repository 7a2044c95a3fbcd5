"""Noise on large weights, drawn in pieces that stay in the processor's cache.

Torch draws normal numbers sixteen at a time. So pieces of a multiple of sixteen hold the numbers of one draw of the
whole. Drawn whole, 25 million of them (FedSage+'s last layer at d = 19,900) are written to memory that the system has
to clear, and read again: a quarter of the time or more.
"""

from math import ceil, prod

import torch
from torch import Tensor

GROUP = 16
"""Torch draws fewer numbers than these one by one, and the last ones of a draw in a group of their own."""
PIECE = 1 << 15
"""Numbers; 128 KiB, beside as many weights. Torch adds as many on one thread."""
WHOLE = 1 << 22
"""So many numbers are drawn at once: glibc gives memory of this size again as it is."""


@torch.no_grad()
def add_normal(weights: Tensor, scale: float, generator: torch.Generator) -> None:
    """Add N(0, scale^2) in place: `weights.add_(torch.randn(weights.shape, generator=generator), alpha=scale)`.

    Args:
        weights: on the CPU, float32 or float64, (rows, ...) of any strides; wide rows that do not lie in one piece of
            memory are drawn sixteen at a time.
        scale: standard deviation.
        generator: of the CPU; it draws float32.
    """
    if weights.numel() <= WHOLE:
        weights.add_(torch.randn(weights.shape, generator=generator, dtype=torch.float32).to(weights), alpha=scale)
        return
    rows = weights.view(-1) if weights.is_contiguous() else weights
    width = prod(rows.shape[1:])
    count = GROUP * max(1, round(PIECE / (GROUP * width)))
    room = torch.empty(min(count + ceil(GROUP / width), len(rows)), width, dtype=torch.float32)
    start = 0
    while start < len(rows):
        stop = min(start + count, len(rows))
        if (len(rows) - stop) * width < GROUP:
            stop = len(rows)
        noise = room[: stop - start].view(stop - start, *rows.shape[1:])
        rows[start:stop].add_(noise.normal_(generator=generator).to(weights), alpha=scale)
        start = stop
