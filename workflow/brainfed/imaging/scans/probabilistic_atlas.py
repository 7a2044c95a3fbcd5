"""Atlas of maps of weights, which may overlap."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

Table = tuple[NDArray[np.int64], tuple[str, ...]]


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
    maps: NDArray[np.float32]
    affine: NDArray[np.float64]
    regions: tuple[str, ...]

    @property
    def without_voxel(self) -> tuple[str, ...]:
        """Regions whose map is 0 everywhere."""
        seen = np.asarray(self.maps.reshape(-1, len(self.regions)).any(axis=0))
        return tuple(name for name, used in zip(self.regions, seen, strict=True) if not used)


def name_maps(
    file: str | Path, values: NDArray[np.generic], table: str | Path | None, named: Table | None
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """(x, y, z, R) maps of an image in the order of its table, and their names.

    Args:
        file: path of the image.
        values: its voxels.
        table: path of the table.
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


def _check_maps(file: str | Path, maps: NDArray[np.float32]) -> None:
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
