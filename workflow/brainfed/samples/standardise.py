"""Z-scores from training subjects only (FedNI spec section 1, `standardise: institution`)."""

import numpy as np
from numpy.typing import NDArray

from brainfed.samples.inputs import FloatArray

BLOCK_ENTRIES = 1 << 22
"""Largest number of values that are copied at once."""
NARROWEST = 16
"""Smallest number of columns a block: numpy sums a single column in another order."""


def centred_subjects(features: FloatArray) -> FloatArray:
    """Features (n, d) minus the mean of each row."""
    centred: FloatArray = features - features.mean(axis=1, dtype=np.float64, keepdims=True).astype(features.dtype)
    return centred


def training_moments(features: FloatArray, rows: NDArray[np.bool_]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and population standard deviation of every column over the chosen rows, in float64.

    A column that is constant over these rows gets an infinite deviation: its z-score is 0 in all subjects, so that a
    column without variation in training has no effect.

    Args:
        features: (n, d).
        rows: (n,) mask of the training subjects.

    Returns:
        mean (d,) and deviation (d,).

    Raises:
        ValueError: no row is chosen.
    """
    if not rows.any():
        raise ValueError("expected training subjects for the moments of a column, found none")
    columns = features.shape[1]
    mean, deviation = np.empty((2, columns))
    width = max(NARROWEST, BLOCK_ENTRIES // int(rows.sum()))
    edges = np.linspace(0, columns, -(-columns // width) + 1).astype(int)
    for block in map(slice, edges[:-1], edges[1:]):
        chosen = features[rows, block]
        mean[block] = chosen.mean(axis=0, dtype=np.float64)
        deviation[block] = np.where(np.ptp(chosen, axis=0) == 0, np.inf, chosen.std(axis=0, dtype=np.float64))
    return mean, deviation
