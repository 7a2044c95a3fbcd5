"""Open one subject's 4D image and refuse an unusable one."""

import math
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine
from numpy.typing import NDArray

from brainfed.imaging.scans.brain_mask import read_brain
from brainfed.imaging.scans.intact import load_nifti, opened, refuse_damaged
from brainfed.runtime.errors import UserError

SECONDS = {0: 1.0, 8: 1.0, 16: 1e-3, 24: 1e-6}
"""Code of NIfTI for the unit of time -> its length in s; an unknown unit is taken for seconds."""
UNIT_OF_TIME = 0o70
"""Bits of `xyzt_units` with that code."""
WHOLE = "a whole NIfTI image"
DEFLATED = 1032
"""Largest ratio by which gzip compresses."""
AT_A_TIME = 2**20
"""Voxels that are read at a time, but at least a volume."""


@dataclass(frozen=True)
class ScanHeader:
    """Header of a 4D image, read before its voxels.

    Attributes:
        shape: (x, y, z, time).
        affine: (4, 4) voxel to mm.
        tr: repetition time in s, NaN if the header has none.
        voxels: path of the file with the voxels: the image, or the .img of a pair.
        size: bytes of that file, decompressed.
    """

    shape: tuple[int, ...]
    affine: NDArray[np.float64]
    tr: float
    voxels: str
    size: int


@dataclass(frozen=True)
class Scan:
    """One 4D image in memory.

    Attributes:
        subject: id.
        file: path of the image.
        voxels: (x, y, z, time) float32, finite.
        affine: (4, 4) voxel to mm.
        tr: repetition time in s of the header, NaN if it has none.
        affines_apart: largest distance in mm of a corner of the grid by sform and by qform; 0: one is unset.
        precision: type of its regions' means, as in nilearn: float32 if the voxels are stored so, else float64.
        brain: (x, y, z) mask of the voxels that may have a signal; None: all.
    """

    subject: str
    file: str
    voxels: NDArray[np.float32]
    affine: NDArray[np.float64]
    tr: float
    affines_apart: float = 0.0
    precision: type[np.float32] | type[np.float64] = np.float32
    brain: NDArray[np.bool_] | None = None


def read_header(subject: str, file: str | Path) -> ScanHeader:
    """Read the header of a 4D NIfTI.

    Raises:
        UserError: the file is absent or not a NIfTI of real numbers, the image is not 4D, or the affine is singular.
    """
    where = f"Subject {subject}, {file}"
    image = load_nifti(where, file, WHOLE)
    with refuse_damaged(where, WHOLE):
        return _header_of(subject, file, image)


def read_scan(subject: str, file: str | Path, mask: str | None = None) -> Scan:
    """Read a 4D NIfTI, and optionally a brain mask on its grid.

    Voxels that are NaN in every volume are background: they become 0 and have no signal. So do NaN and infinite voxels
    outside the mask.

    Raises:
        UserError: the file is absent, damaged or not a NIfTI; the image is not 4D; a voxel is infinite, or NaN in some
            volumes; the affine is singular; the mask is unusable.
    """
    where = f"Subject {subject}, {file}"
    image = load_nifti(where, file, WHOLE)
    with refuse_damaged(where, WHOLE):
        header = _header_of(subject, file, image)
        voxels = _voxels_of(image)
    brain = None if mask is None else read_brain(subject, mask, str(file), header.shape[:3], header.affine)
    _clear_background(where, voxels, brain)
    scaled = (image.dataobj.slope, image.dataobj.inter) != (1, 0)
    precision = np.float32 if image.get_data_dtype() == np.float32 and not scaled else np.float64
    return Scan(subject, str(file), voxels, header.affine, header.tr, _affines_apart(image), precision, brain)


def _clear_background(where: str, voxels: NDArray[np.float32], brain: NDArray[np.bool_] | None) -> None:
    """Set the background of an image to 0 in place, and refuse other voxels that are not finite."""
    volumes = np.moveaxis(voxels, 3, 0)
    if all(np.isfinite(volume).all() for volume in volumes):
        return
    background = np.isnan(volumes[0])
    for volume in volumes[1:]:
        background &= np.isnan(volume)
    voxels[background if brain is None else background | ~brain] = 0
    bad = int(voxels.size - np.isfinite(voxels).sum())
    if bad:
        first = np.argwhere(~np.isfinite(voxels))[0].tolist()
        raise UserError(
            f"{where}: expected finite voxels, found {bad} NaN or infinite ones (first at {first}); repair the image."
        )


def _voxels_of(image: nib.Nifti1Pair) -> NDArray[np.float32]:
    """(x, y, z, time) voxels, read some volumes at a time: at once, nibabel holds a compressed file twice."""
    voxels = np.empty(image.shape, dtype=np.float32, order="F")
    some = max(1, AT_A_TIME // max(1, math.prod(image.shape[:3])))
    with opened(image) as stored:
        for first in range(0, image.shape[3], some):
            voxels[..., first : first + some] = stored[..., first : first + some]
    return voxels


def _header_of(subject: str, file: str | Path, image: nib.Nifti1Pair) -> ScanHeader:
    where = f"Subject {subject}, {file}"
    if len(image.shape) != 4:
        raise UserError(f"{where}: expected a 4D image (x, y, z, time), found shape {image.shape}; give the whole run.")
    affine = np.asarray(image.affine, dtype=np.float64)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise UserError(f"{where}: expected an invertible affine, found {affine.tolist()}; repair the header.")
    size = int(image.dataobj.offset) + math.prod(image.shape) * image.get_data_dtype().itemsize
    voxels = str(image.file_map["image"].filename)
    most = Path(voxels).stat().st_size * (DEFLATED if voxels.endswith(".gz") else 1)
    if size > most and voxels.endswith((".nii", ".img", ".gz")):
        raise EOFError(f"its header promises {size} bytes, it holds at most {most}")
    return ScanHeader(image.shape, affine, _repetition_time(image), voxels, size)


def _repetition_time(image: nib.Nifti1Pair) -> float:
    unit = int(image.header["xyzt_units"]) & UNIT_OF_TIME
    tr = float(image.header["pixdim"][4]) * SECONDS.get(unit, np.nan)
    return tr if tr > 0 else float("nan")


def _affines_apart(image: nib.Nifti1Pair) -> float:
    if not (image.header["sform_code"] and image.header["qform_code"]):
        return 0.0
    corners = np.argwhere(np.ones((2, 2, 2))) * (np.asarray(image.shape[:3]) - 1)
    between = apply_affine(image.get_sform(), corners) - apply_affine(image.get_qform(), corners)
    return float(np.linalg.norm(between, axis=1).max())
