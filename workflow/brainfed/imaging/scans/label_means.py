"""Means over the regions of a parcellation, equal to nilearn's NiftiLabelsMasker, in a tenth of its time.

The masker sorts and counts the labels of the whole grid in every volume. This module computes each volume by one
weighted count over the atlas' voxels, with the same sums in the same order.
"""

import nibabel as nib
import numpy as np
from nilearn.image import resample_img
from numpy.typing import NDArray

from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.coverage import check_present, seen_voxels
from brainfed.imaging.scans.scan import Scan
from brainfed.imaging.scans.space import same_grid


def label_means(
    scan: Scan, varying: NDArray[np.bool_], atlas: Atlas, voxels: NDArray[np.int64]
) -> tuple[NDArray[np.floating], NDArray[np.float64]]:
    """(time, R) means, NaN where no voxel was seen, and (R,) coverage.

    Args:
        scan: the image.
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


def _columns(atlas: Atlas, labels: NDArray[np.int32]) -> NDArray[np.int64]:
    """Position of each label in the atlas' table, which holds all of them."""
    order = np.argsort(atlas.indices)
    return np.asarray(order[np.searchsorted(atlas.indices[order], labels)])
