"""The spatial graph of one subject, or of the mean of several, for a convolution in space and time (FGLBC eq. 4)."""

import numpy as np
from numpy.typing import NDArray

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def positive_correlations(series: Float32) -> Float64:
    """(R, R) matrix A + I of a (T, R) series.

    [choice] A holds the Pearson correlations of the subject's own series that are above 0, without the diagonal. A
    region without signal has no neighbour.
    """
    values = series.astype(np.float64)
    values -= values.mean(axis=0)
    values[:, np.ptp(series, axis=0) == 0] = 0
    norms = np.linalg.norm(values, axis=0)
    values /= np.where(norms > 0, norms, 1)
    adjacency = np.clip(values.T @ values, 0, 1)
    np.fill_diagonal(adjacency, 1)
    return np.asarray(adjacency)


def normalised(adjacency: Float64) -> Float32:
    """(R, R) matrix L^-1/2 (A + I) L^-1/2 of A + I, where L holds its row sums (FGLBC eq. 5)."""
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    return np.asarray(scale[:, None] * adjacency * scale, dtype=np.float32)


def normalised_adjacency(series: Float32) -> Float32:
    """(R, R) normalised positive correlations of a (T, R) series."""
    return normalised(positive_correlations(series))
