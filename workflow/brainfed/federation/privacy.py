"""Noise on uploaded weights (FedNI Sec. III-C).

FedNI calls it differential privacy. Without clipping and an accountant it carries no (epsilon, delta)
guarantee, and the report says so.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from brainfed.federation.message import Message
from brainfed.runtime.streams import Streams


def normal(streams: Streams, shape: Sequence[int], purpose: str, *parts: int | str) -> Tensor:
    """Standard normal numbers of a keyed stream, float32, always drawn on the CPU."""
    generator = torch.Generator().manual_seed(streams.key(purpose, *parts))
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float32)


@dataclass(frozen=True)
class WeightNoise:
    """N(0, scale^2) on every learnable tensor that leaves an institution, one stream a tensor.

    Attributes:
        scale: standard deviation; 0 draws nothing.
        streams: of the repeat.
        folds: the number that each position of the fold axis stands for.
    """

    scale: float
    streams: Streams
    folds: tuple[int, ...]

    def add(self, number: int, replies: Mapping[int, Message]) -> None:
        """Add it in place to the replies of round `number`; moments, such as a batch normalisation's, get none.

        Drawing is serial inside torch, so the streams are drawn side by side on the job's compute threads.
        """
        if self.scale == 0:
            return
        slots = [
            _Slot(tensor[position], institution, fold, name)
            for institution, reply in replies.items()
            for name, tensor in reply.tensors.items()
            if name not in reply.moments
            for position, fold in enumerate(self.folds)
        ]
        _add(slots, self.scale, self.streams, number)


@torch.no_grad()
def noisy_copy(
    weights: Mapping[str, Tensor], scale: float, streams: Streams, institution: int, fold: int, round_index: int
) -> dict[str, Tensor]:
    """What one institution uploads of its `weights`: a copy with the noise of `WeightNoise`, by the same streams."""
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
    @torch.no_grad()
    def add(slot: _Slot) -> None:
        weights, institution, fold, name = slot
        noise = normal(streams, weights.shape, "weight-noise", institution, fold, round_index, name)
        weights.add_(noise.to(weights), alpha=scale)

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        list(pool.map(add, slots))
