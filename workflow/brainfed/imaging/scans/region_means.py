"""The mean of every region of an atlas over a scan, and how much of it the scan saw."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.coverage import varying_voxels
from brainfed.imaging.scans.label_means import label_means
from brainfed.imaging.scans.map_means import map_means
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.scans.scan import Scan
from brainfed.imaging.scans.space import Placed, resampling, suspicion


@dataclass(frozen=True)
class RegionMeans:
    """The atlas as one scan saw it.

    Attributes:
        means: (time, R) in the scan's `precision`, in the order of the atlas; NaN columns where no voxel was seen.
        coverage: (R,) fraction of each region that was seen, 0 where no voxel of the scan is left for it.
        resampled: how the atlas was brought onto the scan's grid, `from 3 mm to 2 mm`; empty: it lay there.
        suspicion: what speaks against the scan's space being the atlas'; empty: nothing.
    """

    means: NDArray[np.floating]
    coverage: NDArray[np.float64]
    resampled: str
    suspicion: str


def average_regions(scan: Scan, atlas: Atlas | ProbabilisticAtlas) -> RegionMeans:
    """Average a scan over every region: the mean of its voxels, or the least-squares fit of its map.

    Raises:
        UserError: no region lies in the field of view, or no voxel of any region varies.
    """
    varying, placed = varying_voxels(scan), place_of(atlas)
    if isinstance(atlas, ProbabilisticAtlas):
        means, coverage = map_means(scan, varying, atlas, placed.voxels)
    else:
        means, coverage = label_means(scan, varying, atlas, placed.voxels)
    return RegionMeans(means, coverage, resampling(scan, placed), suspicion(scan, varying, placed))


def place_of(atlas: Atlas | ProbabilisticAtlas) -> Placed:
    """Where an atlas lies."""
    if isinstance(atlas, ProbabilisticAtlas):
        return Placed(np.argwhere(atlas.maps.any(axis=3)), atlas.maps.shape[:3], atlas.affine)
    return Placed(np.argwhere(atlas.labels > 0), atlas.labels.shape, atlas.affine)
