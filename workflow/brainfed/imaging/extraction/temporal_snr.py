"""Temporal signal-to-noise ratio of a scan."""

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.series.region_signal import RELATIVE_FLOOR


def temporal_snr(means: NDArray[np.floating], kept: NDArray[np.intp] | None = None) -> float:
    """Median over regions of mean / standard deviation about a linear trend, of the (time, R) means before cleaning.

    The ratio is of regions' means, not of voxels: an atlas of larger regions has a higher one. Regions that were not
    seen (NaN) or do not vary beyond rounding are left out; NaN if none is left. An image without its mean has a
    ratio near 0.

    Args:
        means: means of every volume.
        kept: numbers of the steady-state volumes that were not scrubbed; None: all.
    """
    volumes = np.arange(len(means)) if kept is None else kept
    seen = means[volumes][:, ~np.isnan(means).any(axis=0)].astype(np.float64)
    trend = np.column_stack([np.ones(len(volumes)), volumes])
    off = seen - trend @ np.linalg.lstsq(trend, seen, rcond=None)[0]
    spread, level = off.std(axis=0), seen.mean(axis=0)
    varying = spread > RELATIVE_FLOOR * np.abs(seen).max(axis=0, initial=0)
    return float(np.median(level[varying] / spread[varying])) if varying.any() else float("nan")
