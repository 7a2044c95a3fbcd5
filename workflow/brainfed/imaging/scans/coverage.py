"""How much of each region a scan saw."""

from pathlib import Path

import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from brainfed.imaging.scans.scan import Scan
from brainfed.runtime.errors import UserError


def varying_voxels(scan: Scan) -> NDArray[np.bool_]:
    """(x, y, z) mask of the voxels that have a signal: those in the brain that vary in time."""
    varying = np.ptp(scan.voxels, axis=3) > 0
    return np.asarray(varying if scan.brain is None else varying & scan.brain)


def seen_voxels(
    scan: Scan, varying: NDArray[np.bool_], name: str, affine: NDArray[np.float64], voxels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(V,) mask of the atlas' own voxels that a scan saw: in its field of view, where it has a signal.

    Each is looked up at the nearest voxel of the scan, so what is counted does not depend on the scan's resolution.

    Args:
        scan: the image.
        varying: (x, y, z) its voxels with signal.
        name: of the atlas.
        affine: (4, 4) the atlas' voxel to mm.
        voxels: (V, 3) of the atlas.

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
    affine: NDArray[np.float64],
    name: str,
    atlas_affine: NDArray[np.float64],
    voxels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(V, 3) nearest voxel of an image for each of the atlas' voxels, and (V,) whether it lies in the image.

    Args:
        subject: whose image it is.
        file: path of the image.
        shape: (x, y, z) of the image.
        affine: (4, 4) the image's voxel to mm.
        name: of the atlas.
        atlas_affine: (4, 4) the atlas' voxel to mm.
        voxels: (V, 3) of the atlas.

    Raises:
        UserError: none does.
    """
    nearest = np.rint(apply_affine(np.linalg.inv(affine) @ atlas_affine, voxels)).astype(np.int64)
    in_view = np.asarray(((nearest >= 0) & (nearest < shape)).all(axis=1))
    if not in_view.any():
        raise UserError(
            f"Subject {subject}, {file}: expected the space of atlas {name!r} ({_box(atlas_affine, voxels)}), found an "
            f"image that shares no voxel with it ({_extent_of_image(shape, affine)}); register it or mend its affine."
        )
    return nearest, in_view


def check_present(scan: Scan, name: str, present: NDArray[np.bool_]) -> None:
    """Refuse a scan in which no region has a voxel with signal.

    Raises:
        UserError: there is none.
    """
    if not present.any():
        raise UserError(
            f"Subject {scan.subject}, {scan.file}: expected a signal in the regions of atlas {name!r}, found no voxel "
            "that varies in time; is the image masked or empty?"
        )


def _extent_of_image(shape: tuple[int, ...], affine: NDArray[np.float64]) -> str:
    return _box(affine, np.argwhere(np.ones((2, 2, 2))) * (np.asarray(shape) - 1))


def _box(affine: NDArray[np.float64], voxels: NDArray[np.int64]) -> str:
    places = apply_affine(affine, voxels)
    low, high = np.rint(places.min(axis=0)).astype(int), np.rint(places.max(axis=0)).astype(int)
    return ", ".join(f"{axis} {a} ... {b} mm" for axis, a, b in zip("xyz", low, high, strict=True))
