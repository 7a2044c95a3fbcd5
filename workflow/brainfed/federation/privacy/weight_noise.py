"""Noise on uploaded weights (FedNI Sec. III-C.3, Algorithm 1, lines 23 and 30).

FedNI calls it differential privacy. Without clipping and an accountant it has no (epsilon, delta) guarantee; the report
states this. Torch's generator on the CPU reads 32 bits of a seed: among 180,000 draws of a training some are equal.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from brainfed.federation.message import Message
from brainfed.federation.privacy.drawn_ahead import DrawnAhead, Stream
from brainfed.federation.privacy.in_pieces import add_normal
from brainfed.runtime.streams import Streams

WORTH_THREADS = 1 << 20
"""Numbers of a round; fewer are drawn sooner than threads start."""


def generator_of(streams: Streams, purpose: str, *parts: int | str) -> torch.Generator:
    """Torch's generator of a keyed stream, on the CPU."""
    return torch.Generator().manual_seed(streams.key(purpose, *parts))


def normal(streams: Streams, shape: Sequence[int], purpose: str, *parts: int | str, pinned: bool = False) -> Tensor:
    """Standard normal numbers of a keyed stream, float32, always drawn on the CPU, into page-locked memory if asked."""
    generator = generator_of(streams, purpose, *parts)
    return torch.randn(tuple(shape), generator=generator, dtype=torch.float32, pin_memory=pinned)


def secret_normal(streams: Streams, shape: Sequence[int], purpose: str, *parts: int | str) -> Tensor:
    """The same of a stream whose key is a secret: all of its 63 bits count, so that no search finds it."""
    return torch.from_numpy(streams.numpy(purpose, *parts).standard_normal(tuple(shape), dtype=np.float32))


@dataclass(frozen=True)
class WeightNoise:
    """N(0, scale^2) on every learnable tensor that leaves an institution, one stream a tensor.

    Attributes:
        scale: standard deviation; 0 draws nothing.
        streams: of the repeat.
        folds: fold number of each position of the fold axis.
        prefix: of names on the wire; keys of the streams omit it.
        ahead: draws the numbers of coming rounds; None: they are drawn when they are needed.
    """

    scale: float
    streams: Streams
    folds: tuple[int, ...]
    prefix: str = ""
    ahead: DrawnAhead | None = None

    def add(self, number: int, replies: Mapping[int, Message]) -> None:
        """Add noise in place to the replies of round `number`, except to `plain` tensors.

        Torch draws one stream serially, so several streams are drawn at once on the job's compute threads.
        """
        if self.scale != 0:
            slots = (slot for institution, reply in replies.items() for slot in self._slots(institution, reply))
            self._add(list(slots), number)

    def copies(self, number: int, sender: int, messages: Mapping[int, Message]) -> dict[int, Message]:
        """Messages of institution `sender` before round `number`, with noise on copies of its weights.

        Receivers of one message share one copy: the mean of several copies would have less noise.
        """
        if self.scale == 0:
            return dict(messages)
        distinct = {id(message): message for message in messages.values()}
        noisy = {key: self._copy(number, sender, message) for key, message in distinct.items()}
        return {receiver: noisy[id(message)] for receiver, message in messages.items()}

    def _copy(self, number: int, sender: int, message: Message) -> Message:
        copied = {
            name: tensor.detach().clone() for name, tensor in message.tensors.items() if name not in message.plain
        }
        copy = replace(message, tensors={**message.tensors, **copied})
        self._add(self._slots(sender, copy), number)
        return copy

    @torch.no_grad()
    def _add(self, slots: Sequence["_Slot"], number: int) -> None:
        if self.ahead is not None:
            wanted = [(slot.stream, tuple(slot.weights.shape)) for slot in slots]
            for slot, noise in zip(slots, self.ahead.take(self._drawn, wanted, number), strict=True):
                # Page-locked memory is freed for the next draw when its copy has ended.
                slot.weights.add_(noise.to(slot.weights, non_blocking=noise.is_pinned()), alpha=self.scale)
            return

        @torch.no_grad()
        def add(slot: _Slot) -> None:
            if slot.weights.is_cpu and not self.streams.secret:
                add_normal(slot.weights, self.scale, generator_of(self.streams, *self._key(slot.stream, number)))
            else:
                noise = self._drawn(slot.stream, slot.weights.shape, number)
                slot.weights.add_(noise.to(slot.weights), alpha=self.scale)

        if torch.get_num_threads() == 1 or sum(slot.weights.numel() for slot in slots) < WORTH_THREADS:
            for slot in slots:
                add(slot)
            return
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            list(pool.map(add, slots))

    def _drawn(self, stream: Stream, shape: Sequence[int], number: int) -> Tensor:
        """All numbers of a stream at once: for a GPU, in advance, or of a secret key."""
        key = self._key(stream, number)
        if self.streams.secret:
            return secret_normal(self.streams, shape, *key)
        return normal(self.streams, shape, *key, pinned=self.ahead is not None and torch.cuda.is_available())

    def _key(self, stream: Stream, number: int) -> tuple[str, int, int, int, str]:
        institution, fold, name = stream
        return "weight-noise", institution, fold, number, name

    def _slots(self, institution: int, message: Message) -> list["_Slot"]:
        return [
            _Slot(tensor[position], (institution, fold, name.removeprefix(self.prefix)))
            for name, tensor in message.tensors.items()
            if name not in message.plain
            for position, fold in enumerate(self.folds)
        ]


class _Slot(NamedTuple):
    """A tensor with its own stream."""

    weights: Tensor
    stream: Stream
