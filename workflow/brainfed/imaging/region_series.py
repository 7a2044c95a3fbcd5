"""What one subject's scan or text file yields."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RegionSeries:
    """The regions of one subject.

    Attributes:
        series: (time, R) float32 in the order of the atlas table; NaN columns where no voxel was seen.
        coverage: (R,) fraction of each region that was seen.
        tr: repetition time in s, NaN if unknown.
    """

    series: NDArray[np.float32]
    coverage: NDArray[np.float64]
    tr: float
