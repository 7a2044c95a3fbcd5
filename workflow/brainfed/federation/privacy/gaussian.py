"""Normal noise of private releases, of keyed streams.

Torch's generator on the CPU reads 32 bits of its seed: some of the 180,000 draws of a training share their noise, and a
server that tries all seeds finds it. NumPy's reads all 63 bits of the key. Neither is made for cryptography.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from brainfed.runtime.streams import Streams

NOISE = "privacy-noise"
"""Purpose of the streams; their parts are institution, fold, moment of the training and name of the tensor."""


def private_normal(streams: Streams, shape: Sequence[int], *parts: int | str) -> Tensor:
    """Standard normal numbers of a stream, float64, always drawn on the CPU."""
    return torch.from_numpy(streams.numpy(NOISE, *parts).standard_normal(tuple(shape)))
