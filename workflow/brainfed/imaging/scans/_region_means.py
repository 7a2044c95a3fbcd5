"""Region series of a scan: means of regions or maps, and their coverage."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from nilearn.image import resample_img
from nilearn.maskers import NiftiMapsMasker
from numpy.typing import NDArray

from brainfed.imaging.scans._atlas import Atlas, ProbabilisticAtlas
from brainfed.imaging.scans._scan import AtlasGrid, Scan, resampling, same_grid, suspicion
from brainfed.runtime import BoolArray, Float32, Float64, IntArray, UserError


def varying_voxels(scan: Scan) -> BoolArray:
    """(x, y, z) mask of the voxels with signal: those in the brain that vary in time."""
    varying = np.ptp(scan.voxels, axis=3) > 0
    return np.asarray(varying if scan.brain is None else varying & scan.brain)


def seen_voxels(scan: Scan, varying: BoolArray, name: str, affine: Float64, voxels: IntArray) -> BoolArray:
    """(V,) mask of the atlas' voxels that a scan covers: in its field of view and with signal.

    The nearest voxel of the scan decides, so coverage does not depend on the scan's resolution.

    Args:
        varying: (x, y, z) voxels of the scan with signal.
        affine: (4, 4) voxel to mm of the atlas.
        voxels: (V, 3) voxels of the atlas.

    Raises:
        UserError: no voxel lies in the field of view.
    """
    nearest, in_view = voxels_in_view(scan.subject, scan.file, varying.shape, scan.affine, name, affine, voxels)
    signal = np.zeros(len(voxels), dtype=bool)
    signal[in_view] = varying[tuple(nearest[in_view].T)]
    return signal


def voxels_in_view(
    subject: str,
    file: str | Path,
    shape: tuple[int, ...],
    affine: Float64,
    name: str,
    atlas_affine: Float64,
    voxels: IntArray,
) -> tuple[IntArray, BoolArray]:
    """(V, 3) nearest voxel of an image for each voxel of the atlas, and (V,) whether it is in the image.

    Args:
        shape: (x, y, z) of the image.
        affine: (4, 4) voxel to mm of the image.
        atlas_affine: (4, 4) voxel to mm of the atlas.
        voxels: (V, 3) voxels of the atlas.

    Raises:
        UserError: no voxel of the atlas is in the image.
    """
    places = np.rint(apply_affine(np.linalg.inv(affine) @ atlas_affine, voxels))
    nearest = places.clip(-1, max(shape)).astype(np.int64)  # A broken affine may lead beyond all whole numbers.
    in_view = np.asarray(((nearest >= 0) & (nearest < shape)).all(axis=1))
    if not in_view.any():
        corners = np.argwhere(np.ones((2, 2, 2))) * (np.asarray(shape) - 1)
        raise UserError(
            f"Subject {subject}, {file}: expected the space of atlas {name!r} ({_box(atlas_affine, voxels)}), found an "
            f"image that shares no voxel with it ({_box(affine, corners)}); register it or fix its affine."
        )
    return nearest, in_view


def check_present(scan: Scan, name: str, present: BoolArray) -> None:
    """Refuse a scan in which no region has a voxel with signal.

    Raises:
        UserError: no region has a voxel with signal.
    """
    if not present.any():
        raise UserError(
            f"Subject {scan.subject}, {scan.file}: expected a signal in the regions of atlas {name!r}, found no voxel "
            "that varies in time; is the image masked or empty?"
        )


def _box(affine: Float64, voxels: IntArray) -> str:
    places = apply_affine(affine, voxels)
    low, high = np.rint(places.min(axis=0)) + 0.0, np.rint(places.max(axis=0)) + 0.0
    return ", ".join(f"{axis} {a:g} ... {b:g} mm" for axis, a, b in zip("xyz", low, high, strict=True))


# Means over the regions of a parcellation, equal to nilearn's NiftiLabelsMasker, in a tenth of its time.
#
# The masker sorts and counts the labels of the whole grid in every volume. This module computes each volume by one
# weighted count over the atlas' voxels, with the same sums in the same order.


def label_means(scan: Scan, varying: BoolArray, atlas: Atlas, voxels: IntArray) -> tuple[NDArray[np.floating], Float64]:
    """(time, R) means, NaN where no voxel was seen, and (R,) coverage.

    Args:
        varying: (x, y, z) voxels of the scan with signal; the others do not count.
        atlas: the parcellation, resampled to the nearest label if on another grid than the scan's.
        voxels: (V, 3) voxels of the atlas with a label.

    Raises:
        UserError: no region is in the field of view, or no voxel of any region varies.
    """
    regions = len(atlas.indices)
    seen = seen_voxels(scan, varying, atlas.name, atlas.affine, voxels)
    of_atlas = _columns(atlas, atlas.labels[tuple(voxels.T)])
    labels = labels_on_grid(scan, atlas)
    inside = np.nonzero(varying & (labels > 0))
    column = _columns(atlas, labels[inside])
    counted = np.bincount(column, minlength=regions)
    present = counted > 0
    check_present(scan, atlas.name, present)
    total = np.bincount(of_atlas, minlength=regions)
    covered = np.bincount(of_atlas, weights=seen, minlength=regions)
    means = np.full((scan.voxels.shape[3], regions), np.nan, dtype=scan.precision)
    for row, volume in zip(means, np.moveaxis(scan.voxels, 3, 0), strict=True):
        sums = np.bincount(column, weights=volume[inside], minlength=regions)
        row[present] = sums[present] / counted[present]
    return means, np.where(present, covered / np.maximum(total, 1), 0.0)


def labels_on_grid(scan: Scan, atlas: Atlas) -> NDArray[np.int32]:
    """(x, y, z) labels of the voxels of the scan."""
    if same_grid(scan.voxels.shape[:3], scan.affine, atlas.labels.shape, atlas.affine):
        return atlas.labels
    resampled = resample_img(
        nib.Nifti1Image(atlas.labels, atlas.affine),
        target_affine=scan.affine,
        target_shape=scan.voxels.shape[:3],
        interpolation="nearest",
    )
    return np.asarray(resampled.dataobj, dtype=np.int32)


def _columns(atlas: Atlas, labels: NDArray[np.int32]) -> IntArray:
    """Position of each label in the atlas' table, which holds all of them."""
    order = np.argsort(atlas.indices)
    return np.asarray(order[np.searchsorted(atlas.indices[order], labels)])


# Series of the maps of a probabilistic atlas, by nilearn's NiftiMapsMasker.


def map_means(
    scan: Scan, varying: BoolArray, atlas: ProbabilisticAtlas, voxels: IntArray
) -> tuple[NDArray[np.floating], Float64]:
    """(time, R) least-squares weights of the maps in every volume, NaN for unseen maps, and (R,) coverage.

    Coverage is the seen fraction of a map's absolute weight.

    Args:
        varying: (x, y, z) voxels of the scan with signal; the others do not count.
        atlas: the maps, interpolated linearly if on another grid than the scan's.
        voxels: (V, 3) voxels of the atlas with a weight in any map.

    Raises:
        UserError: no map is in the field of view, or no voxel of any map varies.
    """
    seen = seen_voxels(scan, varying, atlas.name, atlas.affine, voxels)
    weights = np.abs(atlas.maps[tuple(voxels.T)]).astype(np.float64)
    maps = _maps_on_grid(atlas, scan.voxels.shape[:3], scan.affine.tobytes())
    present = np.asarray(maps[varying].any(axis=0))
    check_present(scan, atlas.name, present)
    masker = NiftiMapsMasker(
        nib.Nifti1Image(maps[..., present], scan.affine),
        mask_img=nib.Nifti1Image(varying.astype(np.uint8), scan.affine),
        standardize=None,
        resampling_target=None,
        reports=False,
    )
    means = np.full((scan.voxels.shape[3], len(atlas.regions)), np.nan, dtype=np.float32)
    means[:, present] = masker.fit_transform(nib.Nifti1Image(scan.voxels, scan.affine))
    total = weights.sum(axis=0)
    covered = weights[seen].sum(axis=0)
    return means, np.where(present, covered / np.where(total > 0, total, 1.0), 0.0)


@lru_cache(maxsize=1)
def _maps_on_grid(atlas: ProbabilisticAtlas, shape: tuple[int, int, int], affine: bytes) -> Float32:
    """(x, y, z, R) maps on a scan's grid, cached for the next scan on the same grid."""
    target = np.frombuffer(affine, dtype=np.float64).reshape(4, 4)
    if same_grid(shape, target, atlas.maps.shape[:3], atlas.affine):
        return atlas.maps
    resampled = resample_img(
        nib.Nifti1Image(atlas.maps, atlas.affine), target_affine=target, target_shape=shape, interpolation="linear"
    )
    return np.asarray(resampled.dataobj, dtype=np.float32)


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
    coverage: Float64
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
