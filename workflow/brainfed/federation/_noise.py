"""Noise of private releases and on uploaded weights, of keyed streams, in pieces or ahead."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import ceil, prod

import numpy as np
import torch
from torch import Tensor

from brainfed.federation._message import Message
from brainfed.runtime import Streams

# Normal noise of private releases, of keyed streams.
#
# Torch's generator on the CPU reads 32 bits of its seed: some of the 180,000 draws of a training share their noise, and
# a server that tries all seeds finds it. NumPy's reads all 63 bits of the key. Neither is made for cryptography.

Stream = tuple[int, int, str]
"""Institution, fold, name of the tensor."""
Slot = tuple[Tensor, Stream]
"""A tensor with the stream of its noise."""
Shape = tuple[int, ...]

NOISE = "privacy-noise"
"""Purpose of the streams; their parts are institution, fold, moment of the training and name of the tensor."""


def private_normal(streams: Streams, shape: Sequence[int], *parts: int | str) -> Tensor:
    """Standard normal numbers of a stream, float64, always drawn on the CPU."""
    return torch.from_numpy(streams.numpy(NOISE, *parts).standard_normal(tuple(shape)))


# Noise on large weights, drawn in pieces that stay in the processor's cache.
#
# Torch draws normal numbers sixteen at a time. So pieces of a multiple of sixteen hold the numbers of one draw of the
# whole. Drawn whole, 25 million of them (FedSage+'s last layer at d = 19,900) are written to memory that the system has
# to clear, and read again: a quarter of the time or more.

GROUP = 16
"""Torch draws fewer numbers than these one by one, and the last ones of a draw in a group of their own."""
PIECE = 1 << 15
"""Numbers; 128 KiB, beside as many weights. Torch adds as many on one thread."""
WHOLE = 1 << 22
"""So many numbers are drawn at once: glibc gives memory of this size again as it is."""


@torch.no_grad()
def add_normal(weights: Tensor, scale: float, generator: torch.Generator) -> None:
    """Add N(0, scale^2) in place: `weights.add_(torch.randn(weights.shape, generator=generator), alpha=scale)`.

    Weights and generator are on the CPU; weights (rows, ...) are float32 or float64 of any strides, and the generator
    draws float32. Wide rows that do not lie in one piece of memory are drawn sixteen at a time.
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


# Noise of coming rounds, drawn by threads of the host while a GPU trains.
#
# Torch draws one stream serially, 0.1 to 0.2 billion numbers a second. A round of FedSage+'s generator needs 25 million
# at d = 19,900. Drawn in advance into page-locked memory, they cost the training a copy. Torch keeps page-locked memory
# to the end of the job, about twice `MOST_BYTES`, more where a round needs more.

MOST_BYTES = 1 << 29
"""Bytes of numbers that wait to be used; those of one round may take more."""
ITEM_BYTES = 4

Draw = Callable[[Stream, Shape, int], Tensor]
"""Stream, shape, round number -> float32 numbers on the host."""


class DrawnAhead:
    """Draws that a training of so many rounds asks for: once a round, in every round for the same streams."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self._pool: ThreadPoolExecutor | None = None
        self._coming: dict[tuple[Stream, Shape, int], Future[Tensor]] = {}

    @classmethod
    def on(cls, device: str | torch.device, rounds: int, fraction: float = 1.0) -> "DrawnAhead | None":
        """None on a CPU, whose cores train, and where a `fraction` of the institutions, drawn in each round, trains."""
        return cls(rounds) if torch.device(device).type == "cuda" and fraction == 1.0 else None

    def take(self, draw: Draw, wanted: Sequence[tuple[Stream, Shape]], number: int) -> list[Tensor]:
        """Numbers of round `number` for streams and shapes; starts the draws of the next rounds."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="noise")
        pool = self._pool

        def ask(stream: Stream, shape: Shape, at: int) -> Future[Tensor]:
            return self._coming.pop((stream, shape, at), None) or pool.submit(draw, stream, shape, at)

        now = [ask(stream, shape, number) for stream, shape in wanted]
        for at in range(number + 1, min(number + 1 + self._depth(wanted), self.rounds)):
            for stream, shape in wanted:
                self._coming[stream, shape, at] = ask(stream, shape, at)
        for passed in [key for key in self._coming if key[-1] < number]:
            self._coming.pop(passed).cancel()
        return [each.result() for each in now]

    def _depth(self, wanted: Sequence[tuple[Stream, Shape]]) -> int:
        """Rounds whose numbers fit into memory, at least one; torch rounds each block up to a power of two."""
        size = sum(1 << (ITEM_BYTES * prod(shape) - 1).bit_length() for _, shape in wanted)
        return max(1, min(torch.get_num_threads(), MOST_BYTES // max(size, 1)))


# Noise on uploaded weights (FedNI Sec. III-C.3, Algorithm 1, lines 23 and 30).
#
# FedNI calls it differential privacy. Without clipping and an accountant it has no (epsilon, delta) guarantee; the
# report states this.

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
    """The same from a stream whose key is a secret: all of its 63 bits count, so that no search finds it."""
    return torch.from_numpy(streams.numpy(purpose, *parts).standard_normal(tuple(shape), dtype=np.float32))


@dataclass(frozen=True)
class WeightNoise:
    """N(0, scale^2) on every learnable tensor that leaves an institution, one stream a tensor.

    Attributes:
        scale: standard deviation; 0 draws nothing.
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
    def _add(self, slots: Sequence[Slot], number: int) -> None:
        if self.ahead is not None:
            wanted = [(stream, tuple(weights.shape)) for weights, stream in slots]
            for (weights, _), noise in zip(slots, self.ahead.take(self._drawn, wanted, number), strict=True):
                # Page-locked memory is freed for the next draw when its copy has ended.
                weights.add_(noise.to(weights, non_blocking=noise.is_pinned()), alpha=self.scale)
            return

        @torch.no_grad()
        def add(slot: Slot) -> None:
            weights, stream = slot
            if weights.is_cpu and not self.streams.secret:
                add_normal(weights, self.scale, generator_of(self.streams, *self._key(stream, number)))
            else:
                weights.add_(self._drawn(stream, weights.shape, number).to(weights), alpha=self.scale)

        if torch.get_num_threads() == 1 or sum(weights.numel() for weights, _ in slots) < WORTH_THREADS:
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

    def _slots(self, institution: int, message: Message) -> list[Slot]:
        return [
            (tensor[position], (institution, fold, name.removeprefix(self.prefix)))
            for name, tensor in message.tensors.items()
            if name not in message.plain
            for position, fold in enumerate(self.folds)
        ]
