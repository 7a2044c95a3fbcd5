"""Noise on uploaded weights (FedNI Sec. III-C).

FedNI calls it differential privacy. Without clipping and an accountant it carries no (epsilon, delta)
guarantee, and the report says so.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from brainfed.runtime.streams import Streams


def normal(streams: Streams, shape: Sequence[int], purpose: str, *parts: int | str) -> Tensor:
    """Standard normal numbers of a keyed stream, float32, always drawn on the CPU."""
    generator = torch.Generator().manual_seed(streams.key(purpose, *parts))
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float32)


def add_weight_noise(
    stacks: Mapping[str, Tensor], scale: float, streams: Streams, round_index: int, folds: Sequence[int]
) -> None:
    """Add N(0, scale^2) to every learnable tensor (M, F, ...) in place, one stream a tensor.

    Drawing is serial inside torch, so the streams are drawn side by side on the job's compute threads.

    Args:
        stacks: name -> (M, F, ...); buffers such as BatchNorm's variance do not belong here.
        scale: standard deviation; 0 draws nothing.
        streams: of the repeat.
        round_index: of this upload.
        folds: the number that each position of the fold axis stands for.
    """
    if scale == 0:
        return
    slots = [
        (name, institution, position)
        for name, stack in stacks.items()
        for institution in range(stack.shape[0])
        for position in range(len(folds))
    ]

    def add(slot: tuple[str, int, int]) -> None:
        name, institution, position = slot
        weights = stacks[name][institution, position]
        noise = normal(streams, weights.shape, "weight-noise", institution, folds[position], round_index, name)
        weights.add_(noise.to(weights), alpha=scale)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(add, slots))
