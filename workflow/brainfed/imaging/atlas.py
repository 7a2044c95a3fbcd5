"""A parcellation and the names of its regions, in the order of the region table."""

from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.filebasedimages import ImageFileError
from numpy.typing import NDArray

from brainfed.imaging.region_table import read_region_table
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Atlas:
    """A parcellation in its own space.

    Attributes:
        name: as it appears in paths.
        labels: (x, y, z) int32, 0 outside.
        affine: (4, 4) voxel to mm.
        indices: (R,) label of each region; ascending is not required.
        regions: R names in the order of `indices`.
    """

    name: str
    labels: NDArray[np.int32]
    affine: NDArray[np.float64]
    indices: NDArray[np.int64]
    regions: tuple[str, ...]


def load_atlas(name: str, parcellation: str | Path, table: str | Path) -> Atlas:
    """Read a parcellation NIfTI and its region table.

    A region of the table without a voxel stays, and is empty in every subject.

    Raises:
        UserError: the image is damaged, not 3D or not made of integers, or holds a label that the
            table does not name.
    """
    indices, regions = read_region_table(table)
    try:
        image = nib.load(parcellation)
        values = np.asanyarray(image.dataobj)
    except (OSError, EOFError, ValueError, ImageFileError) as error:
        raise UserError(f"{parcellation}: expected a NIfTI parcellation, found a damaged file ({error}).") from error
    if values.ndim == 4 and values.shape[3] == 1:
        values = values[..., 0]
    if values.ndim != 3:
        raise UserError(f"{parcellation}: expected a 3D image of labels, found shape {values.shape}.")
    labels = np.rint(np.nan_to_num(values)).astype(np.int32)
    if not np.array_equal(labels, values):
        raise UserError(f"{parcellation}: expected whole numbers, found fractions; is it a probabilistic atlas?")
    unnamed = np.setdiff1d(labels, [0, *indices])
    if unnamed.size:
        raise UserError(
            f"{parcellation}: expected the {len(indices)} labels of {table}, found {unnamed.size} more "
            f"({', '.join(map(str, unnamed[:5]))}{' ...' if unnamed.size > 5 else ''}); add them to the table or set "
            "their voxels to 0."
        )
    return Atlas(name, labels, np.asarray(image.affine, dtype=np.float64), indices, regions)
