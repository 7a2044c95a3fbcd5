"""Correlation of region series, shrunk towards the identity as Ledoit and Wolf (2004) estimate it.

Of standardised series x (T, R) with the correlation C, the estimate is (1 - d) C + d I, where

    d = min(b, a) / a,    a = |C - I|^2 / R,    b = (sum_t |x_t|^4 / T - |C|^2) / (R T).

It equals scikit-learn's `LedoitWolf` of these series, whose mean variance is 1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.series.region_signal import varying_regions
from brainfed.imaging.series.standardise import standardised

Float64 = NDArray[np.float64]


def mean_correlation(series: NDArray[np.float32], lengths: Sequence[int] = ()) -> Float64:
    """(R, R) mean over runs of the shrunk correlation of a subject; runs of all lengths have equal weights.

    A mean of positive definite matrices is positive definite. Therefore a region that is constant in one run counts
    there with the correlation 0, and is not left out of the mean.

    Args:
        series: (time, R), the runs one after the other.
        lengths: of the runs; empty: the series is one.
    """
    runs = np.split(series, np.cumsum(lengths)[:-1]) if len(lengths) else [series]
    return np.asarray(np.mean([shrunk_correlation(run) for run in runs], axis=0))


def shrunk_correlation(series: NDArray[np.float32]) -> Float64:
    """(R, R) shrunk correlation of a (time, R) series; a region without signal has the row and column of the identity.

    Such a region does not affect the others.
    """
    varying = np.flatnonzero(varying_regions(series))
    values = standardised(series)[:, varying]
    time, regions = values.shape
    matrix = np.eye(series.shape[1])
    if regions:
        correlation = values.T @ values / time
        np.fill_diagonal(correlation, 1.0)
        matrix[np.ix_(varying, varying)] = (1 - _shrinkage(values, correlation)) * correlation
        np.fill_diagonal(matrix, 1.0)
    return matrix


def _shrinkage(values: Float64, correlation: Float64) -> float:
    """The weight d of the identity; 0 if the correlation is the identity."""
    time, regions = values.shape
    squared = float((correlation**2).sum())
    distance = squared / regions - 1
    error = (float((np.square(values).sum(axis=1) ** 2).sum()) / time - squared) / (regions * time)
    return min(error, distance) / distance if distance > 0 else 0.0
