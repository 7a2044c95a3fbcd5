"""Noise on uploaded weights (FedNI Sec. III-C).

FedNI calls it differential privacy. Without clipping and an accountant it carries no (epsilon, delta)
guarantee, and the report says so.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

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
        _Slot(stack[institution, position], institution, folds[position], name)
        for name, stack in stacks.items()
        for institution in range(stack.shape[0])
        for position in range(len(folds))
    ]
    _add(slots, scale, streams, round_index)


@torch.no_grad()
def noisy_copy(
    weights: Mapping[str, Tensor], scale: float, streams: Streams, institution: int, fold: int, round_index: int
) -> dict[str, Tensor]:
    """What one institution uploads of its `weights`: a copy with `add_weight_noise`'s noise, by the same streams."""
    copies = {name: weight.detach().clone() for name, weight in weights.items()}
    _add([_Slot(copy, institution, fold, name) for name, copy in copies.items()], scale, streams, round_index)
    return copies


class _Slot(NamedTuple):
    """A tensor with a stream of its own."""

    weights: Tensor
    institution: int
    fold: int
    name: str


def _add(slots: Sequence[_Slot], scale: float, streams: Streams, round_index: int) -> None:
    def add(slot: _Slot) -> None:
        weights, institution, fold, name = slot
        noise = normal(streams, weights.shape, "weight-noise", institution, fold, round_index, name)
        weights.add_(noise.to(weights), alpha=scale)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(add, slots))
