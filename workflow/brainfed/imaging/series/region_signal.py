"""Find the regions of a series without signal: their correlations are undefined."""

import numpy as np
from numpy.typing import NDArray

RELATIVE_FLOOR = 1e-6


def empty_regions(series: NDArray[np.floating]) -> NDArray[np.bool_]:
    """(R,) mask of the columns of a (time, R) series that are NaN: no voxel was seen."""
    return np.asarray(np.isnan(series).all(axis=0))


def constant_regions(series: NDArray[np.floating]) -> NDArray[np.bool_]:
    """(R,) mask of the columns of a (time, R) series that do not vary beyond float32 rounding."""
    values = np.where(np.isnan(series), 0.0, series).astype(np.float64)
    flat = np.ptp(values, axis=0) <= RELATIVE_FLOOR * np.abs(values).max(axis=0)
    return np.asarray(flat & ~empty_regions(series))


def rounding_regions(cleaned: NDArray[np.float64], means: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(R,) mask of the columns with only the float32 rounding of the means left after cleaning."""
    return np.asarray(np.ptp(cleaned, axis=0) <= RELATIVE_FLOOR * np.abs(means).max(axis=0))


def varying_regions(series: NDArray[np.floating]) -> NDArray[np.bool_]:
    """(R,) mask of the columns with defined correlations: seen throughout and varying."""
    return np.asarray(~(np.isnan(series).any(axis=0) | constant_regions(series)))
