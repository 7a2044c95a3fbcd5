"""The server's part of a round: choose institutions, aggregate their replies, broadcast."""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message


class Strategy(Protocol):
    """The loop's interface to a server."""

    def choose(self, number: int, /) -> tuple[int, ...]:
        """The institutions that train in round `number`."""

    def aggregate(self, number: int, replies: Mapping[int, Message], /) -> None:
        """Aggregate the replies of round `number`; their tensors are views that the next round overwrites."""

    def broadcast(self, number: int, /) -> Mapping[int, Message]:
        """The messages before round `number`, by institution; none where nothing is shared.

        The messages after the last round end the training. A resumed training calls this again for its first round.
        """

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays that later rounds depend on."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""


class EndingStrategy(Strategy, Protocol):
    """A server that ends when it has converged, with a result."""

    def finished(self) -> bool:
        """Whether no further round is needed."""

    def published(self) -> dict[str, NDArray[Any]]:
        """What every institution learns of the result beside the last messages."""
