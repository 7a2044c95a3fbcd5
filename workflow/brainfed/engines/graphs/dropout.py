"""Dropout of a graph network, drawn on the CPU from keyed streams (Srivastava et al. 2014).

A draw has 8 bits, or 16: torch's own takes 40 times as long, which would be half of a round.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class KeyedDropout:
    """Which activations a step keeps.

    Attributes:
        rate: share that is dropped, as a multiple of 1 / 256, else to the nearest 1 / 65,536.
        streams: random streams of the repeat.
    """

    rate: float
    streams: Streams

    @property
    def scale(self) -> float:
        """Factor of what is kept."""
        return self._levels / self._kept_levels if self.rate else 1.0

    def draws(self, key: tuple[int, ...], shapes: Sequence[tuple[int, int]]) -> list[Tensor]:
        """Integers of a step, uniform over all of their type; none without dropout.

        Args:
            key: institution, fold, round, epoch, step.
            shapes: of the activations of each layer.
        """
        if not self.rate:
            return []
        kind = np.dtype(np.int8 if self._levels == 1 << 8 else np.int16)
        stream = self.streams.numpy("dropout", *key).bit_generator
        found = []
        for rows, width in shapes:
            words = np.asarray(stream.random_raw(-(-rows * width * kind.itemsize // 8)))
            found.append(torch.from_numpy(words.view(kind)[: rows * width].reshape(rows, width)))
        return found

    @property
    def bound(self) -> int:
        """An activation is kept if its draw is above this."""
        return self._levels // 2 - 1 - self._kept_levels

    @property
    def _levels(self) -> int:
        return 1 << 8 if (self.rate * 256).is_integer() else 1 << 16

    @property
    def _kept_levels(self) -> int:
        return min(max(round((1 - self.rate) * self._levels), 1), self._levels - 1)
