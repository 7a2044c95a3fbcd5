"""How much of each region a scan saw."""

from dataclasses import dataclass

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from nilearn.image import resample_img
from numpy.typing import NDArray

from brainfed.imaging.atlas import Atlas
from brainfed.imaging.scan import Scan
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Seen:
    """The atlas as one scan saw it.

    Attributes:
        labels: (x, y, z) int32 on the scan's grid, 0 where the scan has no signal.
        coverage: (R,) fraction of each region's voxels with signal, 0 where no voxel is left.
    """

    labels: NDArray[np.int32]
    coverage: NDArray[np.float64]


def see_atlas(scan: Scan, atlas: Atlas) -> Seen:
    """Lay the atlas over a scan; a voxel has signal if it lies in the field of view and varies in time.

    Coverage counts the atlas' own voxels, each looked up at the nearest voxel of the scan, so it does
    not depend on the scan's resolution. An atlas on another grid is resampled to the nearest label.

    Raises:
        UserError: no region lies in the field of view, or no voxel of any region varies.
    """
    varying = np.ptp(scan.voxels, axis=3) > 0
    position = np.argwhere(atlas.labels > 0)
    label = atlas.labels[tuple(position.T)]
    to_scan = np.linalg.inv(scan.affine) @ atlas.affine
    nearest = np.rint(apply_affine(to_scan, position)).astype(np.int64)
    in_view = ((nearest >= 0) & (nearest < varying.shape)).all(axis=1)
    if not in_view.any():
        raise UserError(
            f"Subject {scan.subject}, {scan.file}: expected the space of atlas {atlas.name!r} ({_extent(atlas)}), "
            f"found an image that shares no voxel with it ({_extent_of_scan(scan)}); register it or mend its affine."
        )
    signal = np.zeros(len(position), dtype=bool)
    signal[in_view] = varying[tuple(nearest[in_view].T)]
    labels = np.where(varying, _on_grid(scan, atlas), 0).astype(np.int32)
    present = np.isin(atlas.indices, labels)
    if not present.any():
        raise UserError(
            f"Subject {scan.subject}, {scan.file}: expected a signal in the regions of atlas {atlas.name!r}, found no "
            "voxel that varies in time; is the image masked or empty?"
        )
    size = atlas.indices.max() + 1
    total = np.bincount(label, minlength=size)[atlas.indices]
    covered = np.bincount(label, weights=signal, minlength=size)[atlas.indices]
    return Seen(labels, np.where(present, covered / np.maximum(total, 1), 0.0))


def _on_grid(scan: Scan, atlas: Atlas) -> NDArray[np.int32]:
    shape = scan.voxels.shape[:3]
    if atlas.labels.shape == shape and np.allclose(atlas.affine, scan.affine, atol=1e-4):
        return atlas.labels
    resampled = resample_img(
        nib.Nifti1Image(atlas.labels, atlas.affine),
        target_affine=scan.affine,
        target_shape=shape,
        interpolation="nearest",
    )
    return np.asarray(resampled.dataobj, dtype=np.int32)


def _extent(atlas: Atlas) -> str:
    return _box(atlas.affine, np.argwhere(atlas.labels > 0))


def _extent_of_scan(scan: Scan) -> str:
    return _box(scan.affine, np.argwhere(np.ones((2, 2, 2))) * (np.asarray(scan.voxels.shape[:3]) - 1))


def _box(affine: NDArray[np.float64], voxels: NDArray[np.int64]) -> str:
    places = apply_affine(affine, voxels)
    low, high = np.rint(places.min(axis=0)).astype(int), np.rint(places.max(axis=0)).astype(int)
    return ", ".join(f"{axis} {a} ... {b} mm" for axis, a, b in zip("xyz", low, high, strict=True))
