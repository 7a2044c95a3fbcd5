"""Read region series that already exist: ABIDE's and ADHD-200's `.1D` files, or csv and tsv tables."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError

ROI_STATS = ("file", "sub-brick")
"""Columns that AFNI's 3dROIstats (ADHD-200, Athena) writes before those of the regions, `Mean_1` ..."""


MISSING = frozenset({"", "n/a", "na", "null", "none", "-", "."})
FEWEST_COUNTED = 3
"""Columns from which on a first line 0 1 2 ... or 1 2 3 ... is taken for their numbers, as pandas writes them."""


@dataclass(frozen=True)
class NamedSeries:
    """One subject's (time, R) float32 series and its region names, `1` ... `R` where the file has none."""

    series: NDArray[np.float32]
    regions: tuple[str, ...]


@dataclass(frozen=True)
class SeriesHead:
    """How a text file begins.

    Attributes:
        separator: between its cells, a regular expression.
        names: of the regions, empty where the first line holds values only.
        before: columns in front of those of the regions.
    """

    separator: str
    names: tuple[str, ...]
    before: int = 0


def read_head(subject: str, file: str | Path) -> SeriesHead:
    """Read the first line of a text file of region series.

    Raises:
        UserError: the file is absent or no text, or its first line is neither a header nor a volume.
    """
    try:
        with Path(file).open(encoding="utf-8-sig") as lines:
            first = lines.readline()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"Subject {subject}, {file}: expected a text file of region series, found none that reads ({error})."
        ) from error
    separator = max(",;\t", key=first.count) if any(mark in first for mark in ",;\t") else r"\s+"
    names = _header(f"Subject {subject}, {file}", first, separator)
    before = len(ROI_STATS) if tuple(name.casefold() for name in names[:2]) == ROI_STATS else 0
    names = [name.removeprefix("Mean_") for name in names[before:]] if before else names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(
            f"Subject {subject}, {file}, line 1: expected every region once, found {twice!r} again; rename one."
        )
    return SeriesHead(separator, tuple(names), before)


def read_roi_series(subject: str, file: str | Path, regions: int | None) -> NamedSeries:
    """Read one text file, a row a volume, a column a region.

    The header, if there is one, is a first line that is not all numbers (`#1 <tab> #2 ...`), or counts the columns.
    In AFNI's 3dROIstats
    tables the columns File and Sub-brick are no regions.

    Raises:
        UserError: the file is absent or empty, holds text, NaN or infinite values, a ragged row, or
            another number of regions than `regions`.
    """
    where = f"Subject {subject}, {file}"
    head = read_head(subject, file)
    skipped = 1 if head.names else 0
    kept = range(head.before, head.before + len(head.names)) if head.before else None
    values = _read_fast(file, head.separator, skipped, kept)
    if values is None:
        values = _read_careful(where, file, head.separator, skipped, kept)
    names = head.names
    found = values.shape[1]
    expected = regions if regions is not None else len(names) or found
    if found != expected or len(names or range(found)) != found:
        raise UserError(
            f"{where}: expected {expected} regions, found {found} columns"
            f"{f' under {len(names)} names' if len(names or range(found)) != found else ''}; is it another atlas?"
        )
    return NamedSeries(values, names or tuple(str(index) for index in range(1, found + 1)))


def _header(where: str, line: str, separator: str) -> list[str]:
    """Names in the first line without their `#`, or nothing if it is a volume."""
    cells = re.split(separator, line.strip())
    numeric = [_is_number(cell) for cell in cells]
    if all(numeric):
        count = len(cells)
        counted = [[str(start + place) for place in range(count)] for start in (0, 1)]
        return counted[1] if count >= FEWEST_COUNTED and cells in counted else []
    names = [cell.strip().strip('"').lstrip("#").strip() for cell in cells]
    if len(names) > 1:
        for place, name in enumerate(names, start=1):
            if not name or (name.casefold() in MISSING and any(numeric)):
                raise UserError(
                    f"{where}, line 1: expected a name or a finite number in every column, found {name!r} in column "
                    f"{place}; fill it in, or remove the column if it counts the rows."
                )
    return names


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_fast(file: str | Path, separator: str, skipped: int, kept: range | None) -> NDArray[np.float32] | None:
    """All numbers of the table, or None if any cell is not a finite one."""
    try:
        table = pd.read_csv(
            file, sep=separator, header=None, skiprows=skipped, usecols=kept, engine="c", dtype=np.float64
        )
    except (ValueError, OSError):
        return None
    values: NDArray[np.float32] = table.to_numpy(dtype=np.float32)
    return values if np.isfinite(values).all() else None


def _read_careful(
    where: str, file: str | Path, separator: str, skipped: int, kept: range | None
) -> NDArray[np.float32]:
    """Read cell by cell, to name the first one that is not a finite number."""
    try:
        table = pd.read_csv(
            file, sep=separator, header=None, skiprows=skipped, usecols=kept, engine="c", dtype=str, na_filter=False
        )
    except (ValueError, OSError) as error:
        raise UserError(f"{where}: expected rows of equal length, found a broken table ({error}).") from error
    numbers = table.apply(pd.to_numeric, errors="coerce")
    values: NDArray[np.float32] = numbers.to_numpy(dtype=np.float32)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, column = bad[0]
        raise UserError(
            f"{where}, line {row + skipped + 1}: expected a finite number in column {table.columns[column] + 1}, found "
            f"{table.iat[row, column]!r} ({len(bad)} such cells); repair the file or drop the subject."
        )
    return values
