"""Training without a server: every institution by itself, or one with pooled data."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from brainfed.federation.message import Message


class Alone:
    """All institutions train in every round and send nothing.

    Args:
        institutions: codes.
    """

    def __init__(self, institutions: tuple[int, ...]) -> None:
        self.institutions = institutions

    def choose(self, _number: int) -> tuple[int, ...]:
        """All of them."""
        return self.institutions

    def aggregate(self, _number: int, replies: Mapping[int, Message]) -> None:
        """No replies."""

    def broadcast(self, _number: int) -> Mapping[int, Message]:
        """Nothing."""
        return {}

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""
