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
        volumes: how many were acquired, scrubbed ones included; 0: as many as the series has.
        mean_fd: mean framewise displacement in mm over the acquired volumes, NaN if unknown.
        tsnr: median over regions of the temporal signal-to-noise ratio of its kept volumes, NaN if unknown.
        runs: length of each run in `series`, in order; empty: one run.
        resampled: how the atlas was brought onto the scan's grid, `from 3 mm to 2 mm`; empty: it lay there.
        suspicion: what speaks against the scan's space being the atlas'; empty: nothing.
        header_tr: repetition time by the image header where a sidecar says otherwise, NaN where they agree.
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
