"""Noise of coming rounds, drawn by threads of the host while a GPU trains.

Torch draws one stream serially, 0.1 to 0.2 billion numbers a second. A round of FedSage+'s generator needs 25 million
at d = 19,900. Drawn in advance into page-locked memory, they cost the training a copy. Torch keeps page-locked memory
to the end of the job, about twice `MOST_BYTES`, more where a round needs more.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod

import torch
from torch import Tensor

MOST_BYTES = 1 << 29
"""Of numbers that wait to be used; one round's may take more."""
ITEM_BYTES = 4

Stream = tuple[int, int, str]
"""Institution, fold, name of the tensor."""
Shape = tuple[int, ...]
Draw = Callable[[Stream, Shape, int], Tensor]
"""Stream, shape, round number -> float32 numbers on the host."""


class DrawnAhead:
    """Draws that a training of so many rounds asks for: once a round, in every round for the same streams.

    Args:
        rounds: of the training; nothing is drawn for later ones.
    """

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self._pool: ThreadPoolExecutor | None = None
        self._coming: dict[tuple[Stream, Shape, int], Future[Tensor]] = {}

    @classmethod
    def on(cls, device: str | torch.device, rounds: int, fraction: float = 1.0) -> "DrawnAhead | None":
        """None on a CPU, whose cores train, and where a `fraction` of the institutions, drawn in each round, trains."""
        return cls(rounds) if torch.device(device).type == "cuda" and fraction == 1.0 else None

    @property
    def waiting(self) -> list[tuple[Stream, int]]:
        """Streams and rounds whose numbers are drawn, or will be, and were not taken."""
        return [(stream, number) for stream, _, number in self._coming]

    def take(self, draw: Draw, wanted: Sequence[tuple[Stream, Shape]], number: int) -> list[Tensor]:
        """Numbers of round `number` for streams and shapes; starts the draws of the next rounds.

        Args:
            draw: makes the numbers of one stream and round.
            wanted: streams and shapes.
            number: of the round.
        """
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
