"""Scores with one entry for each class."""

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.score_kinds import COMPLEMENT, ScoreKind


def of_two_classes(score: NDArray[np.float64], kind: ScoreKind) -> NDArray[np.float64]:
    """Scores (..., 2) of both classes from scores (...) of the patient class: 1 - p and p, or -m and m."""
    return np.stack([COMPLEMENT[kind] - score, score], axis=-1)
