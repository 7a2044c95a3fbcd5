"""Atlases: a parcellation or maps of weights, with the names of their regions."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.imaging.scans._region_table import read_region_table
from brainfed.imaging.scans._scan import load_nifti, opened, refuse_damaged
from brainfed.runtime import Float32, Float64, IntArray, UserError

Table = tuple[IntArray, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class ProbabilisticAtlas:
    """A 4D atlas in its own space; atlases are compared by identity, so that one can be the key of a cache.

    Attributes:
        name: as it appears in paths.
        maps: (x, y, z, R) float32 weights, 0 outside.
        affine: (4, 4) voxel to mm.
        regions: R names in the order of `maps`.
    """

    name: str
    maps: Float32
    affine: Float64
    regions: tuple[str, ...]

    @property
    def without_voxel(self) -> tuple[str, ...]:
        """Regions whose map is 0 everywhere."""
        seen = np.asarray(self.maps.reshape(-1, len(self.regions)).any(axis=0))
        return tuple(name for name, used in zip(self.regions, seen, strict=True) if not used)


def name_maps(
    file: str | Path, values: NDArray[np.generic], table: str | Path | None, named: Table | None
) -> tuple[Float32, tuple[str, ...]]:
    """(x, y, z, R) maps of an image in the order of its table, and their names.

    Args:
        named: number of each map, counted from 1, and its name; None: all maps, named by number.

    Raises:
        UserError: the image is a stack of parcellations, or the table does not name every map once.
    """
    maps = np.nan_to_num(values.astype(np.float32, copy=False))
    _check_maps(file, maps)
    count = maps.shape[3]
    if named is None:
        return maps, tuple(str(number) for number in range(1, count + 1))
    numbers, regions = named
    if sorted(numbers) != list(range(1, count + 1)):
        raise UserError(
            f"{table}: expected the indices 1 ... {count}, one for each map of {file}, found {len(numbers)} from "
            f"{min(numbers)} to {max(numbers)}; fix the table."
        )
    return np.ascontiguousarray(maps[..., numbers - 1]), regions


def _check_maps(file: str | Path, maps: Float32) -> None:
    """Refuse a stack of parcellations, which share their voxels; maps of weights differ in place."""
    support = maps != 0
    everywhere, somewhere = support.all(axis=3).sum(), support.any(axis=3).sum()
    if not somewhere:
        raise UserError(f"{file}: expected a map of weights a region, found zeros only.")
    if everywhere > 0.8 * somewhere and np.array_equal(maps, np.rint(maps)):
        raise UserError(
            f"{file}: expected one parcellation, or one map of weights a region, found {maps.shape[3]} parcellations "
            "of the same voxels; save one of them as a 3D image."
        )


PARCELLATION = "a NIfTI parcellation"
WHOLE_TO = 1e-3
"""Largest distance of a label from a whole number: rounding of a scale factor, or of single precision."""
LARGEST = np.iinfo(np.int32).max


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
    affine: Float64
    indices: IntArray
    regions: tuple[str, ...]

    @property
    def without_voxel(self) -> tuple[str, ...]:
        """Regions of the table that no voxel of the image belongs to."""
        absent = ~np.isin(self.indices, self.labels)
        return tuple(name for name, unused in zip(self.regions, absent, strict=True) if unused)


def load_atlas(name: str, parcellation: str | Path, table: str | Path | None = None) -> Atlas | ProbabilisticAtlas:
    """Read an atlas NIfTI and its region table; without a table, numbers name the regions.

    A 3D image holds labels, a 4D image one map of weights a region. A region of the table without a voxel stays and is
    empty in every subject; `without_voxel` names it.

    Raises:
        UserError: the image is damaged, holds neither labels nor maps, or does not match the table.
    """
    named = None if table is None else read_region_table(table)
    image = load_nifti(str(parcellation), parcellation, PARCELLATION)
    with refuse_damaged(str(parcellation), PARCELLATION), opened(image) as stored:
        values = np.asanyarray(stored)
    affine = np.asarray(image.affine, dtype=np.float64)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-9:
        raise UserError(f"{parcellation}: expected an invertible affine, found {affine.tolist()}; repair the header.")
    if values.ndim == 4 and values.shape[3] == 1:
        values = values[..., 0]
    if values.ndim == 4:
        maps, regions = name_maps(parcellation, values, table, named)
        return ProbabilisticAtlas(name, maps, affine, regions)
    if values.ndim != 3:
        raise UserError(
            f"{parcellation}: expected a 3D image of labels or a 4D image of one map a region, found shape "
            f"{values.shape}."
        )
    labels = _whole(parcellation, values)
    present = np.unique(labels[labels != 0])
    if named is None:
        named = present.astype(np.int64), tuple(str(label) for label in present)
    indices, regions = named
    unnamed = np.setdiff1d(present, indices)
    if unnamed.size:
        raise UserError(
            f"{parcellation}: expected the {len(indices)} labels of {table}, found {unnamed.size} more "
            f"({', '.join(map(str, unnamed[:5]))}{' ...' if unnamed.size > 5 else ''}); add them to the table or set "
            "their voxels to 0."
        )
    if not present.size:
        raise UserError(f"{parcellation}: expected labels above 0, found none; is it an empty image?")
    return Atlas(name, labels, affine, indices, regions)


def _whole(parcellation: str | Path, values: NDArray[np.generic]) -> NDArray[np.int32]:
    """Labels of a parcellation, rounded; NaN is outside.

    Raises:
        UserError: a label is a fraction, below 0 or too large.
    """
    numbers = np.nan_to_num(values.astype(np.float64, copy=False), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if numbers.max(initial=0) > LARGEST:
        raise UserError(f"{parcellation}: expected labels up to {LARGEST}, found {numbers.max():g}; repair the image.")
    rounded = np.rint(numbers)
    if rounded.min(initial=0) < 0:
        raise UserError(f"{parcellation}: expected labels above 0, found {rounded.min():g}; set its voxels to 0.")
    if not np.allclose(rounded, numbers, rtol=0, atol=WHOLE_TO):
        raise UserError(
            f"{parcellation}: expected whole numbers, found fractions; a probabilistic atlas has a fourth axis, one "
            "map a region."
        )
    return rounded.astype(np.int32)
