"""Open one subject's 4D image and refuse what cannot be used."""

import zlib
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

SECONDS = {"sec": 1.0, "unknown": 1.0, "msec": 1e-3, "usec": 1e-6}


@dataclass(frozen=True)
class Scan:
    """One 4D image in memory.

    Attributes:
        subject: whose it is.
        file: where it came from.
        voxels: (x, y, z, time) float32, finite.
        affine: (4, 4) voxel to mm.
        tr: repetition time in s by the header, NaN if it has none.
    """

    subject: str
    file: str
    voxels: NDArray[np.float32]
    affine: NDArray[np.float64]
    tr: float


def read_scan(subject: str, file: str | Path) -> Scan:
    """Read a 4D NIfTI.

    Raises:
        UserError: the file is absent, truncated or no NIfTI; the image is not 4D; a voxel is NaN or
            infinite; the affine is singular.
    """
    where = f"Subject {subject}, {file}"
    try:
        image = nib.load(file)
        shape = image.shape
        if len(shape) != 4:
            raise UserError(f"{where}: expected a 4D image (x, y, z, time), found shape {shape}; give the whole run.")
        voxels = np.asanyarray(image.dataobj, dtype=np.float32)
    except (OSError, EOFError, ValueError, zlib.error, ImageFileError) as error:
        raise UserError(
            f"{where}: expected a whole NIfTI image, found a damaged or absent file ({error}); fetch it again."
        ) from error
    bad = int(voxels.size - np.isfinite(voxels).sum())
    if bad:
        first = np.argwhere(~np.isfinite(voxels))[0].tolist()
        raise UserError(
            f"{where}: expected finite voxels, found {bad} NaN or infinite ones (first at {first}); repair the image."
        )
    affine = np.asarray(image.affine, dtype=np.float64)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise UserError(f"{where}: expected an invertible affine, found {affine.tolist()}; repair the header.")
    return Scan(subject, str(file), voxels, affine, _repetition_time(image))


def _repetition_time(image: nib.Nifti1Image) -> float:
    zooms, unit = image.header.get_zooms(), image.header.get_xyzt_units()[1]
    tr = float(zooms[3]) * SECONDS.get(unit, np.nan)
    return tr if tr > 0 else float("nan")
