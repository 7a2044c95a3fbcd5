"""Coverage of regions by a scan."""

from pathlib import Path

import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from brainfed.imaging.scans.scan import Scan
from brainfed.runtime.errors import UserError


def varying_voxels(scan: Scan) -> NDArray[np.bool_]:
    """(x, y, z) mask of the voxels with signal: those in the brain that vary in time."""
    varying = np.ptp(scan.voxels, axis=3) > 0
    return np.asarray(varying if scan.brain is None else varying & scan.brain)


def seen_voxels(
    scan: Scan, varying: NDArray[np.bool_], name: str, affine: NDArray[np.float64], voxels: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(V,) mask of the atlas' voxels that a scan covers: in its field of view and with signal.

    The nearest voxel of the scan decides, so coverage does not depend on the scan's resolution.

    Args:
        scan: the image.
        varying: (x, y, z) voxels of the scan with signal.
        name: name of the atlas.
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
    affine: NDArray[np.float64],
    name: str,
    atlas_affine: NDArray[np.float64],
    voxels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(V, 3) nearest voxel of an image for each voxel of the atlas, and (V,) whether it is in the image.

    Args:
        subject: id, for messages.
        file: path of the image.
        shape: (x, y, z) of the image.
        affine: (4, 4) voxel to mm of the image.
        name: name of the atlas.
        atlas_affine: (4, 4) voxel to mm of the atlas.
        voxels: (V, 3) voxels of the atlas.

    Raises:
        UserError: no voxel of the atlas is in the image.
    """
    places = np.rint(apply_affine(np.linalg.inv(affine) @ atlas_affine, voxels))
    nearest = places.clip(-1, max(shape)).astype(np.int64)  # A broken affine may lead beyond all whole numbers.
    in_view = np.asarray(((nearest >= 0) & (nearest < shape)).all(axis=1))
    if not in_view.any():
        raise UserError(
            f"Subject {subject}, {file}: expected the space of atlas {name!r} ({_box(atlas_affine, voxels)}), found an "
            f"image that shares no voxel with it ({_extent_of_image(shape, affine)}); register it or fix its affine."
        )
    return nearest, in_view


def check_present(scan: Scan, name: str, present: NDArray[np.bool_]) -> None:
    """Refuse a scan in which no region has a voxel with signal.

    Raises:
        UserError: no region has a voxel with signal.
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
    low, high = np.rint(places.min(axis=0)) + 0.0, np.rint(places.max(axis=0)) + 0.0
    return ", ".join(f"{axis} {a:g} ... {b:g} mm" for axis, a, b in zip("xyz", low, high, strict=True))
