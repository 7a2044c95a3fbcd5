"""Mean and coverage of every region of an atlas in a scan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.coverage import varying_voxels
from brainfed.imaging.scans.label_means import label_means
from brainfed.imaging.scans.map_means import map_means
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.scans.scan import Scan
from brainfed.imaging.scans.space import AtlasGrid, resampling, suspicion


@dataclass(frozen=True)
class RegionMeans:
    """Means and coverage of an atlas in one scan.

    Attributes:
        means: (time, R) in the scan's `precision`, in the order of the atlas; NaN columns where no voxel was seen.
        coverage: (R,) seen fraction of each region; 0 for a region without a voxel of the scan.
        resampled: resampling of the atlas to the scan's grid, `from 3 mm to 2 mm`; empty: same grid.
        suspicion: evidence against the scan being in the atlas' space; empty: none.
    """

    means: NDArray[np.floating]
    coverage: NDArray[np.float64]
    resampled: str
    suspicion: str


def average_regions(scan: Scan, atlas: Atlas | ProbabilisticAtlas) -> RegionMeans:
    """Average a scan over every region: the mean of its voxels, or the least-squares fit of its map.

    Raises:
        UserError: no region is in the field of view, or no voxel of any region varies.
    """
    varying, placed = varying_voxels(scan), grid_of(atlas)
    if isinstance(atlas, ProbabilisticAtlas):
        means, coverage = map_means(scan, varying, atlas, placed.voxels)
    else:
        means, coverage = label_means(scan, varying, atlas, placed.voxels)
    return RegionMeans(means, coverage, resampling(scan, placed), suspicion(scan, varying, placed))


def grid_of(atlas: Atlas | ProbabilisticAtlas) -> AtlasGrid:
    """Grid of an atlas, with the voxels of its regions."""
    if isinstance(atlas, ProbabilisticAtlas):
        return AtlasGrid(np.argwhere(atlas.maps.any(axis=3)), atlas.maps.shape[:3], atlas.affine)
    return AtlasGrid(np.argwhere(atlas.labels > 0), atlas.labels.shape, atlas.affine)
