"""Random streams keyed by their purpose, never by the name of a variant.

Two variants that draw the same quantity (the first weights of fold 3, the noise of round 7) draw the
same numbers, whatever else either of them draws, and in whatever order the jobs run.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Streams:
    """All random numbers of one repeat, derived from the config's seed."""

    seed: int
    repeat: int = 0

    def key(self, purpose: str, *parts: int | str) -> int:
        """A 63-bit seed for one purpose and its (institution, fold, round, epoch, ...) parts."""
        text = json.dumps([self.seed, self.repeat, purpose, *parts], default=int)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def numpy(self, purpose: str, *parts: int | str) -> np.random.Generator:
        """A numpy generator for one purpose."""
        return np.random.Generator(np.random.PCG64(self.key(purpose, *parts)))
