"""The interval between checkpoints."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from brainfed.runtime.jobs.stopping import stop_asked

CHECKPOINT_SECONDS = 20
CHECKPOINT_SHARE = 0.05


@dataclass
class Pace:
    """Checkpoints at most every `minimum_seconds`, in at most 5 % of the time, and before the job stops."""

    minimum_seconds: float = CHECKPOINT_SECONDS
    _last: float = field(default_factory=time.monotonic)
    _cost: float = 0.0

    def due(self) -> bool:
        """Whether to write the next state."""
        return stop_asked() or time.monotonic() - self._last >= max(self.minimum_seconds, self._cost / CHECKPOINT_SHARE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Measure the time of one writing."""
        start = time.monotonic()
        yield
        self._last = time.monotonic()
        self._cost = self._last - start


class EveryRound(Pace):
    """A checkpoint after every round: a site that comes back finds the coordinator one round ahead at most."""

    def due(self) -> bool:
        """Always."""
        return True
