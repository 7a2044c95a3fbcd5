"""Which institutions an attack has poisoned."""

from brainfed.federation.robustness_settings import share_of
from brainfed.runtime.streams import Streams


def attacked_institutions(share: float, institutions: int, streams: Streams) -> frozenset[int]:
    """Codes of the first ceil(share M) of a random order of M institutions; a larger share holds those of a smaller.

    Args:
        share: from 0 to 1.
        institutions: their number M.
        streams: of the repeat.
    """
    order = streams.numpy("attacked").permutation(institutions)
    return frozenset(order[: share_of(share, institutions)].tolist())
