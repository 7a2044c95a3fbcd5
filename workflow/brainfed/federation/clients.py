"""The institutions that train here: all of them in a simulation, one at a real site."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation.message import Message

Arrays = dict[str, NDArray[Any]]


class Clients(Protocol):
    """What the loop needs of an engine."""

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes of those that train here."""

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Train the chosen in round `number`; what each of them sends, itself as it is, without any noise."""

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Take what the server sends, by institution; tensors that no message names stay."""

    def score(self, number: int) -> str:
        """Measure what the institutions hold after round `number`; a few words for the person who waits."""

    def state(self, number: int) -> Arrays:
        """What later rounds and the results depend on and no message brings, after round `number`."""

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take up what `state` gave after round `number`."""
