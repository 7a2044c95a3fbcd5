"""How a training reaches institutions outside its process, and the interval between its checkpoints."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

from brainfed.runtime.jobs import stop_asked

# When a training writes its state: often enough to lose little, and seldom enough to cost little.

Arrays = dict[str, NDArray[Any]]


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


# How a training reaches the institutions that are not in its process: none in a simulation, all others at a real site.
#
# A training calls `server` for its strategy, and `federation.add_up`, which calls `total`, wherever it adds up
# numbers of several institutions. It runs unchanged in both. A real site brings its own link.

# Linear baselines start twice as fast without torch.
if TYPE_CHECKING:
    from brainfed.federation.strategies import EndingStrategy, Strategy


class Link(Protocol):
    """The interface of a training to the rest of its federation."""

    @property
    def apart(self) -> bool:
        """Whether other institutions are outside this process."""

    def server(self, strategy: "Strategy", rounds: int) -> "Strategy":
        """Who aggregates the rounds: `strategy` itself, or a coordinator that runs one like it."""

    def ending_server(self, strategy: "EndingStrategy", rounds: int) -> "EndingStrategy":
        """The same for a strategy that ends when it has converged and publishes a result."""

    def pace(self, usual: "Pace") -> "Pace":
        """The interval between checkpoints, `usual` where all institutions share a process."""

    def total(self, parts: Mapping[str, NDArray[Any]]) -> Arrays:
        """Sums over all processes of the federation, by name; what this process gives may cross as it is."""

    def largest(self, number: int) -> int:
        """The largest of the numbers that all processes give."""


class Together:
    """The link of a simulation, whose institutions share one process."""

    apart = False

    def server(self, strategy: "Strategy", rounds: int) -> "Strategy":
        """The strategy."""
        del rounds
        return strategy

    def ending_server(self, strategy: "EndingStrategy", rounds: int) -> "EndingStrategy":
        """The strategy."""
        del rounds
        return strategy

    def pace(self, usual: "Pace") -> "Pace":
        """The usual one."""
        return usual

    def total(self, parts: Mapping[str, NDArray[Any]]) -> Arrays:
        """The parts, which are those of all institutions."""
        return dict(parts)

    def largest(self, number: int) -> int:
        """The number."""
        return number


TOGETHER = Together()
