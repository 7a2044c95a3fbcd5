"""Scores and losses of the rounds of a training."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Curves:
    """Scores and losses of all rounds.

    Attributes:
        probabilities: (T, M, F, n, C) after every round, each institution by its own current model.
        losses: (T, M, F) training loss, mean over the round's local steps that had a labelled subject; NaN where an
            institution had none or did not train.
    """

    probabilities: NDArray[np.float64]
    losses: NDArray[np.float64]

    @classmethod
    def of(cls, rounds: int, labels: Tensor, classes: int) -> "Curves":
        """Empty curves for labels (M, F, n)."""
        return cls(np.zeros((rounds, *labels.shape, classes)), np.zeros((rounds, *labels.shape[:2])))

    def until(self, number: int) -> dict[str, NDArray[np.float64]]:
        """Arrays of the rounds up to `number`, by name."""
        return {"probabilities": self.probabilities[: number + 1], "losses": self.losses[: number + 1]}
