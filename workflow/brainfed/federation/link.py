"""How a training reaches the institutions that are not in its process: none in a simulation, all others at a real site.

A training calls `server` for its strategy, and `federation.sharing.add_up`, which calls `total`, wherever it adds up
numbers of several institutions. It runs unchanged in both. `federation.apart` holds the links of real sites.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import NDArray

# Linear baselines start twice as fast without torch.
if TYPE_CHECKING:
    from brainfed.federation.pace import Pace
    from brainfed.federation.strategies.strategy import EndingStrategy, Strategy

Arrays = dict[str, NDArray[Any]]


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
