"""A parcellation and the names of its regions, in the order of the region table."""

from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
from nibabel.filebasedimages import ImageFileError
from numpy.typing import NDArray

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


def read_region_table(table: str | Path) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels and names of a tab-separated region table with the columns index and name.

    Raises:
        UserError: a column is absent, an index is no positive whole number, or one appears twice.
    """
    frame = pd.read_csv(table, sep="\t", dtype=str, encoding="utf-8-sig", keep_default_na=False)
    absent = [column for column in ("index", "name") if column not in frame.columns]
    if absent:
        raise UserError(
            f"{table}: expected the tab-separated columns index and name, found {', '.join(frame.columns)}; "
            f"add {' and '.join(absent)}."
        )
    for line, index in enumerate(frame["index"], start=2):
        if not index.strip().isdigit() or int(index) == 0:
            raise UserError(f"{table}, line {line}: expected a positive whole number as index, found {index!r}.")
    for column in ("index", "name"):
        twice = frame.loc[frame[column].duplicated(), column]
        if len(twice):
            raise UserError(f"{table}: expected every {column} once, found {twice.iloc[0]!r} again; rename one.")
    return np.asarray(frame["index"], dtype=np.int64), tuple(frame["name"])
