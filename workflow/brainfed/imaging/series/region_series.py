"""Region series of one subject, from a scan or a text file."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RegionSeries:
    """Region series and quality of one subject.

    Attributes:
        series: (time, R) float32 in the order of the atlas table; NaN columns where no voxel was seen.
        coverage: (R,) seen fraction of each region.
        tr: repetition time in s, NaN if unknown.
        volumes: number of acquired volumes, scrubbed ones included; 0: the length of the series.
        mean_fd: mean framewise displacement in mm over the acquired volumes, NaN if unknown.
        tsnr: median over regions of the temporal signal-to-noise ratio of its kept volumes, NaN if unknown.
        runs: length of each run in `series`, in order; empty: one run.
        resampled: resampling of the atlas to the scan's grid, `from 3 mm to 2 mm`; empty: same grid.
        suspicion: evidence against the scan being in the atlas' space; empty: none.
        header_tr: repetition time of the image header if a sidecar contradicts it, else NaN.
    """

    series: NDArray[np.float32]
    coverage: NDArray[np.float64]
    tr: float
    volumes: int = 0
    mean_fd: float = float("nan")
    tsnr: float = float("nan")
    runs: tuple[int, ...] = ()
    resampled: str = ""
    suspicion: str = ""
    header_tr: float = float("nan")
