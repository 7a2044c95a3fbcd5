"""No server: every institution trains by itself, or one holds the data of all."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from brainfed.federation.message import Message


class Alone:
    """Everybody trains in every round and nothing is sent.

    Args:
        institutions: their codes.
    """

    def __init__(self, institutions: tuple[int, ...]) -> None:
        self.institutions = institutions

    def choose(self, _number: int) -> tuple[int, ...]:
        """All of them."""
        return self.institutions

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """Nothing to take."""

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """Nothing."""
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to take up."""
