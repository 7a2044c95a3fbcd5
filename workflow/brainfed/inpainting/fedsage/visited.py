"""Owners that another owner's fGen visits: their codes, and its losses at them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.clients import Arrays
from brainfed.inpainting.fedsage.owner import Owner

LOSSES = ("feature", "feature_elsewhere")


class Visited:
    """All owners with missing neighbours, under either exchange.

    Args:
        home: code of the visiting owner, a host of its own fGen.
        owners: with missing neighbours.
        rounds: number of rounds.

    Attributes:
        losses: (rounds, 2) at the visiting owner, and the sum over the others.
    """

    def __init__(self, home: int, owners: Sequence[Owner], rounds: int) -> None:
        self.home, self.owners = home, {owner.institution: owner for owner in owners}
        self.losses = np.zeros((rounds, len(LOSSES)))

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes."""
        return tuple(self.owners)

    def add_loss(self, number: int, code: int, loss: float) -> None:
        """Add the loss of round `number` at one owner."""
        self.losses[number, int(code != self.home)] += loss

    def score(self, number: int) -> str:
        """The sum of the losses."""
        return f"loss {self.losses[number].sum():.4f}"

    def state(self, number: int) -> Arrays:
        """The losses."""
        return {"losses": self.losses[: number + 1]}

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a `state`."""
        self.losses[: number + 1] = arrays["losses"]
