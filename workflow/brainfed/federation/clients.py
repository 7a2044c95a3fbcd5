"""The interface of training institutions: all of them in a simulation, one at a real site."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message

Arrays = dict[str, NDArray[Any]]


class Clients(Protocol):
    """The loop's interface to an engine."""

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes of the institutions that train here."""

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Train the chosen institutions in round `number`; their replies, without noise."""

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the server's messages, one an institution; tensors that no message names stay."""

    def score(self, number: int) -> str:
        """Measure the institutions' models after round `number`; a few words for the progress line."""

    def state(self, number: int) -> Arrays:
        """Arrays that later rounds and the results depend on, after `receive` and `score` of round `number`."""

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy the `state` after round `number`."""
