"""Client selection by FedAvg's fraction C."""

from brainfed.runtime.streams import Streams


def choose(institutions: int, fraction: float, streams: Streams, round_index: int) -> tuple[int, ...]:
    """max(round(C M), 1) of the M institutions, drawn without replacement, ascending."""
    count = max(round(fraction * institutions), 1)
    order = streams.numpy("client-selection", round_index).permutation(institutions)
    return tuple(sorted(order[:count].tolist()))
