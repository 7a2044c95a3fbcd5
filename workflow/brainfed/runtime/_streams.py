"""Random streams keyed by their purpose, never by the name of a variant.

Two variants that draw the same quantity (the first weights of fold 3, the noise of round 7) draw the
same numbers, whatever else either of them draws, and in whatever order the jobs run.
"""

import hashlib
import json
from dataclasses import dataclass

import numpy as np

PROTECTIVE = frozenset({"weight-noise", "privacy-noise", "poisson"})
"""Purposes of streams that protect subjects: their key suffices to subtract the noise."""


@dataclass(frozen=True)
class Streams:
    """All random numbers of one repeat, derived from the config's seed.

    Attributes:
        seed: of the config, known to all.
        repeat: number of the repeat.
        secret: key of the `PROTECTIVE` streams of an institution at its own site, known there alone; empty in a
            simulation.
    """

    seed: int
    repeat: int = 0
    secret: str = ""

    def key(self, purpose: str, *parts: int | str) -> int:
        """A 63-bit seed for one purpose and its (institution, fold, round, epoch, ...) parts."""
        hidden = [self.secret] if self.secret and purpose in PROTECTIVE else []
        text = json.dumps([self.seed, self.repeat, purpose, *parts, *hidden], default=int)
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def numpy(self, purpose: str, *parts: int | str) -> np.random.Generator:
        """A numpy generator for one purpose."""
        return np.random.Generator(np.random.PCG64(self.key(purpose, *parts)))
