"""The institutions that train here: all of them in a simulation, one at a real site."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message

Arrays = dict[str, NDArray[Any]]


class Clients(Protocol):
    """An engine, as the loop sees it."""

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes of those that train here."""

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Train the chosen in round `number`; their replies, without any noise."""

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Take the server's messages, by institution, once each; tensors that no message names stay."""

    def score(self, number: int) -> str:
        """Measure what the institutions hold after round `number`; a few words for the person who waits."""

    def state(self, number: int) -> Arrays:
        """All that later rounds and the results depend on, after `receive` and `score` of round `number`."""

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `state` gave after round `number`."""
