"""The server's part of a round: the choice of institutions, the use of their replies, the answers."""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message


class Strategy(Protocol):
    """A server, as the loop sees it."""

    def choose(self, number: int, /) -> tuple[int, ...]:
        """The institutions that train in round `number`."""

    def aggregate(self, number: int, replies: Mapping[int, Message], /) -> None:
        """Take the replies of round `number`; their tensors are views that the next round overwrites."""

    def broadcast(self, number: int, /) -> Mapping[int, Message]:
        """The messages before round `number`, by institution; none where nothing is shared.

        Those before round 0 open the training, those before a round that never comes close it. A resumed training asks
        again for the last ones.
        """

    def state(self) -> dict[str, NDArray[Any]]:
        """All that later rounds depend on."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `state` gave."""
