"""Temporal signal-to-noise ratio of a scan."""

import numpy as np
from numpy.typing import NDArray


def temporal_snr(means: NDArray[np.floating]) -> float:
    """Median over regions of mean / standard deviation in time of the (time, R) means before cleaning.

    Regions that were not seen (NaN) or do not vary are left out; NaN if none is left. An image whose mean was removed
    has one near 0.
    """
    seen = means[:, ~np.isnan(means).any(axis=0)].astype(np.float64)
    spread = seen.std(axis=0)
    varying = spread > 0
    if not varying.any():
        return float("nan")
    return float(np.median(seen.mean(axis=0)[varying] / spread[varying]))
