"""The meaning of a method's scores: their kinds, their columns in a table, and the class that they predict."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

ScoreKind = Literal["probability", "margin"]
THRESHOLD: dict[str, float] = {"probability": 0.5, "margin": 0.0}
"""Value above which a score of class 1 predicts class 1, where there are two classes."""
COMPLEMENT: dict[str, float] = {"probability": 1.0, "margin": 0.0}
"""Sum of the scores of two classes."""
SCORE = "score"
"""Column with the score of class 1, where there are two classes."""
SCORE_OF = "score-"
"""Prefix of the columns with one score a class, where there are more; the name of the class follows."""


def score_columns(classes: Sequence[str]) -> tuple[str, ...]:
    """Columns of the scores of named classes, in their order: one for two classes, else one a class."""
    return (SCORE,) if len(classes) == 2 else tuple(f"{SCORE_OF}{name}" for name in classes)


def predicted_classes(scores: NDArray[np.float64], kind: str) -> NDArray[np.int64]:
    """The class (n,) that scores (n, C) predict: of two classes 1 above the threshold, else the largest score's.

    The first of equal scores counts.
    """
    if scores.shape[1] == 2:
        return (scores[:, 1] > THRESHOLD[kind]).astype(np.int64)
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)
