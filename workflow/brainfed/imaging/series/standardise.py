"""Standardise region series before their covariance is computed."""

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.series.region_signal import varying_regions


def standardised(series: NDArray[np.float32]) -> NDArray[np.float64]:
    """(time, R) series with mean 0 and variance 1; a region without signal is 0 throughout."""
    varying = varying_regions(series)
    values = np.where(varying, series, 0.0).astype(np.float64)
    values -= values.mean(axis=0)
    return np.asarray(values / np.where(varying, values.std(axis=0), 1.0))
