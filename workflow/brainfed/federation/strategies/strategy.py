"""The server's part of a round: who trains, what becomes of the replies, who is sent what."""

from collections.abc import Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message


class Strategy(Protocol):
    """What the loop needs of a server."""

    def choose(self, number: int, /) -> tuple[int, ...]:
        """The institutions that train in round `number`."""

    def aggregate(self, replies: Mapping[int, Message]) -> None:
        """Take the replies of the chosen."""

    def broadcast(self) -> Mapping[int, Message]:
        """What every institution is sent after `aggregate`; nothing where nothing is shared."""

    def state(self) -> dict[str, NDArray[Any]]:
        """What `broadcast` depends on."""

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `state` gave."""
