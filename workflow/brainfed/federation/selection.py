"""Client selection by FedAvg's fraction C."""

from dataclasses import dataclass

from brainfed.runtime.streams import Streams


def choose(institutions: int, fraction: float, streams: Streams, round_index: int) -> tuple[int, ...]:
    """max(round(C M), 1) of the M institutions, drawn without replacement, ascending."""
    count = max(round(fraction * institutions), 1)
    order = streams.numpy("client-selection", round_index).permutation(institutions)
    return tuple(sorted(order[:count].tolist()))


@dataclass(frozen=True)
class Selection:
    """The institutions of every round of a training.

    Attributes:
        institutions: M.
        fraction: C.
        streams: of the repeat.
    """

    institutions: int
    fraction: float
    streams: Streams

    def __call__(self, number: int) -> tuple[int, ...]:
        """The institutions of round `number`."""
        return choose(self.institutions, self.fraction, self.streams, number)
