"""Scores and losses of the rounds of a training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from brainfed.samples.labelled_subjects import IntArray, LabelledSubjects


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


def of_subjects(
    inputs: LabelledSubjects,
    members: Sequence[IntArray],
    probabilities: NDArray[np.float64],
    chosen: Callable[[int], NDArray[np.bool_]],
    folds: Sequence[int],
) -> NDArray[np.float64]:
    """(T, F, n, C) scores of subjects from (T, M, F, m, C) of the institutions; NaN of subjects that are not chosen.

    Args:
        inputs: subjects of the repeat.
        members: (M,) positions of the subjects of each trainer.
        probabilities: of every trainer's subjects, padded to the largest one.
        chosen: fold -> (n,) mask.
        folds: numbers of the F folds.
    """
    found = np.full((len(probabilities), len(folds), len(inputs.subjects), inputs.classes), np.nan)
    for position, fold in enumerate(folds):
        for place, own in enumerate(members):
            kept = chosen(fold)[own]
            found[:, position, own[kept]] = probabilities[:, place, position, : len(own)][:, kept]
    return found
