"""Region series of one subject, from existing files, and the regions without signal."""

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.imaging.series._arrays import array_format, read_array, refuse_other_orientation
from brainfed.imaging.series._text import (
    DECIMAL_COMMA,
    SeriesText,
    bare_rows,
    cells_of,
    is_missing,
    is_number,
    read_header,
    read_series_text,
)
from brainfed.runtime import BoolArray, Float32, Float64, UserError

# Find the regions of a series without signal: their correlations are undefined.

RELATIVE_FLOOR = 1e-6


def empty_regions(series: NDArray[np.floating]) -> BoolArray:
    """(R,) mask of the columns of a (time, R) series that are NaN: no voxel was seen."""
    return np.asarray(np.isnan(series).all(axis=0))


def constant_regions(series: NDArray[np.floating]) -> BoolArray:
    """(R,) mask of the columns of a (time, R) series that do not vary beyond float32 rounding."""
    values = np.where(np.isnan(series), 0.0, series).astype(np.float64)
    flat = np.ptp(values, axis=0) <= RELATIVE_FLOOR * np.abs(values).max(axis=0)
    return np.asarray(flat & ~empty_regions(series))


def rounding_regions(cleaned: Float64, means: Float64) -> BoolArray:
    """(R,) mask of the columns with only the float32 rounding of the means left after cleaning."""
    return np.asarray(np.ptp(cleaned, axis=0) <= RELATIVE_FLOOR * np.abs(means).max(axis=0))


def varying_regions(series: NDArray[np.floating]) -> BoolArray:
    """(R,) mask of the columns with defined correlations: seen throughout and varying."""
    return np.asarray(~(np.isnan(series).any(axis=0) | constant_regions(series)))


@dataclass(frozen=True)
class RegionSeries:
    """Region series and quality of one subject.

    Attributes:
        series: (time, R) float32 in the order of the atlas table; NaN columns where no voxel was seen.
        coverage: (R,) seen fraction of each region.
        tr: repetition time in s, NaN if unknown.
        volumes: number of acquired volumes, scrubbed ones included; 0: the length of the series.
        mean_fd: mean framewise displacement in mm over the acquired volumes, NaN if unknown.
        tsnr: median over regions of the temporal signal-to-noise ratio of its kept volumes, NaN if unknown.
        runs: length of each run in `series`, in order; empty: one run.
        resampled: resampling of the atlas to the scan's grid, `from 3 mm to 2 mm`; empty: same grid.
        suspicion: evidence against the scan being in the atlas' space; empty: none.
        header_tr: repetition time of the image header if a sidecar contradicts it, else NaN.
    """

    series: Float32
    coverage: Float64
    tr: float
    volumes: int = 0
    mean_fd: float = float("nan")
    tsnr: float = float("nan")
    runs: tuple[int, ...] = ()
    resampled: str = ""
    suspicion: str = ""
    header_tr: float = float("nan")


# Read existing region series: text (ABIDE's and ADHD-200's `.1D`, csv, tsv), NumPy's and MATLAB's files.

ROI_STATS = ("file", "sub-brick")
"""Columns of AFNI's 3dROIstats (ADHD-200, Athena) before those of the regions, `Mean_1` ..."""

LOST = 0.02
"""Largest accepted rounding error of float32, as a fraction of the range of a region's values."""
LARGEST = float(np.finfo(np.float32).max)
BOOLEANS = frozenset({"true", "false"})
"""Words that pandas reads as 1 and 0 in a column of such words."""
FEWEST_COUNTED = 5
"""Fewest volumes at which a first column that counts them is refused."""
EPSILON = float(np.finfo(np.float32).eps)
OF_FLOAT32 = 1e-8
"""Values that float32 wrote, with nine digits or more, differ from float32 by a smaller fraction."""
OF_FLOAT64 = 1e-12
"""A range below this fraction of the values is rounding of float64."""


@dataclass(frozen=True)
class NamedSeries:
    """One subject's (time, R) float32 series and its region names, `1` ... `R` if the file has none."""

    series: Float32
    regions: tuple[str, ...]


def read_roi_series(
    subject: str,
    file: str | Path,
    regions: int | None,
    header: bool | None = None,
    indices: Sequence[int] | None = None,
    *,
    transposed: bool | None = None,
    variable: str | None = None,
    known: Sequence[str] = (),
) -> NamedSeries:
    """Read one file with a row a volume and a column a region.

    The content decides how it is read: NumPy's and MATLAB's files by `imaging.series._arrays`, all others as text. Of
    text, blank lines, comments above and below the rows, separators that end all rows, byte order marks and the kind of
    line ends are ignored. `imaging.series._text` decides whether the first line names the regions. The columns File
    and Sub-brick of AFNI's 3dROIstats tables are skipped. A region that is missing throughout (`n/a`, NaN) has no
    signal, and is NaN.

    Args:
        regions: number of regions; None: that of the file.
        header: whether the first line of a text names the regions; None: decide by rule.
        indices: indices of the cohort's region table; None without a table.
        transposed: whether the file has a row a region; None: it has not, and is refused if it looks so.
        variable: name of the array in a file of several.
        known: names of the cohort's regions, by which those of CONN's files are chosen.

    Raises:
        UserError: the file is absent, empty, damaged or neither text nor arrays; its first line may be names or
            numbers; it holds text, single NaN or infinite values, differences that float32 cannot hold, a ragged row,
            another number of regions than `regions`, or, if that is None, a first column that counts the rows; or its
            rows seem to be regions.
    """
    where = f"Subject {subject}, {file}"
    if array_format(file) is not None:
        exact, names = read_array(where, file, variable, known, regions)
    else:
        exact, names = _read_text(subject, file, regions, False if transposed else header, indices, transposed)
    if transposed and not names:
        exact = exact.T
    _refuse_bad_values(where, exact)
    values = exact.astype(np.float32)
    _refuse_other_width(where, values.shape, names, regions, transposed, of_table=indices is not None)
    if regions is None:
        _refuse_count(where, exact, names)
    _refuse_lost_signal(where, exact, values)
    refuse_other_orientation(where, exact, transposed)
    return NamedSeries(values, names or tuple(str(index) for index in range(1, values.shape[1] + 1)))


def _read_text(
    subject: str,
    file: str | Path,
    regions: int | None,
    header: bool | None,
    indices: Sequence[int] | None,
    transposed: bool | None,
) -> tuple[Float64, tuple[str, ...]]:
    """Numbers and names of a text file; NaN in columns that are missing throughout."""
    where = f"Subject {subject}, {file}"
    text = read_series_text(subject, file)
    names = read_header(subject, file, text, header, indices)
    before = len(ROI_STATS) if tuple(name.casefold() for name in names[:2]) == ROI_STATS else 0
    names = tuple(name.removeprefix("Mean_") for name in names[before:]) if before else names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        remedy = "rename one"
        if all(map(is_number, names)):
            remedy = "set `header: false` if this line is the first volume, else rename one"
        raise UserError(f"{where}, line {text.line}: expected every region once, found {twice!r} again; {remedy}.")
    width = None if transposed else regions or len(names) or None
    rows = text.rest if names else f"{text.first}\n{text.rest}"
    rows = bare_rows(rows, text.separator, None if width is None else before + width)
    kept = range(before, before + len(names)) if before else None
    exact = _read_fast(rows, text.separator, kept)
    return _read_careful(where, rows, text, bool(names), kept) if exact is None else exact, names


def _refuse_bad_values(where: str, exact: Float64) -> None:
    """Refuse values of an array that are not finite, but for columns that are NaN throughout."""
    bad = ~(np.abs(exact) <= LARGEST) & ~np.isnan(exact).all(axis=0)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        raise UserError(
            f"{where}: expected finite numbers, found {exact[row, column]} in row {row + 1}, column {column + 1} "
            f"({int(bad.sum())} such values); repair the file or drop the subject."
        )


def _refuse_other_width(
    where: str,
    shape: Sequence[int],
    names: Sequence[str],
    regions: int | None,
    transposed: bool | None,
    *,
    of_table: bool,
) -> None:
    volumes, columns = shape
    expected = regions if regions is not None else len(names) or columns
    under = f" under {len(names)} names" if names and len(names) != columns else ""
    if columns == expected and not under:
        return
    if volumes == expected and not names:
        other = "remove `transposed: true`" if transposed else "set `transposed: true`"
        raise UserError(
            f"{where}: expected {expected} regions in columns, found {volumes} rows and {columns} columns; the table "
            f"is transposed: {other} for the cohort if all its files are so, or turn this one."
        )
    remedy = "repair the first line"
    if not under:
        key = "name the table of this atlas under `labels`" if of_table else f"set `regions: {columns}`"
        remedy = f"{key} if all files are so, else bring this one's series of the cohort's atlas"
    raise UserError(f"{where}: expected {expected} regions, found {columns} columns{under}; {remedy}.")


def _refuse_count(where: str, exact: Float64, names: Sequence[str]) -> None:
    """Refuse a first column that counts the volumes, which some programs write before the regions."""
    volumes = np.arange(len(exact))
    if len(exact) >= FEWEST_COUNTED and any(np.array_equal(exact[:, 0], start + volumes) for start in (0, 1)):
        named = f" ({names[0]!r})" if names else ""
        raise UserError(
            f"{where}: expected a signal in every column, found column 1{named} that counts the rows from "
            f"{exact[0, 0]:.0f} to {exact[-1, 0]:.0f}; remove it, or set `regions` for the cohort if it is a region."
        )


def _refuse_lost_signal(where: str, exact: Float64, rounded: Float32) -> None:
    """Refuse small variations about large values, which rounding to float32 loses."""
    top, bottom = exact.max(axis=0), exact.min(axis=0)
    largest, spread = np.maximum(np.abs(top), np.abs(bottom)), top - bottom
    if (LOST * spread >= EPSILON * largest).all():
        return
    error = np.abs(exact - rounded)
    lost = (error.max(axis=0) > LOST * spread) & (spread > OF_FLOAT64 * largest)
    lost &= (error > OF_FLOAT32 * np.abs(exact)).any(axis=0) | (np.ptp(rounded, axis=0) < spread / 2)
    if lost.any():
        column = int(np.flatnonzero(lost)[0])
        raise UserError(
            f"{where}: expected a signal that single precision can hold, found values in column {column + 1} that "
            f"range over {spread[column]:.3g} at about {largest[column]:.3g} ({int(lost.sum())} such columns); "
            "subtract its mean from each column."
        )


def _read_fast(rows: str, separator: str, kept: range | None) -> Float64 | None:
    """Read all numbers of the table; None if float32 cannot hold a cell."""
    top = cells_of(rows.lstrip("\n \t").partition("\n")[0], separator)
    if any(cell.casefold() in BOOLEANS for cell in top):
        return None
    try:
        table = pd.read_csv(
            BytesIO(rows.encode()),
            sep=separator,
            header=None,
            usecols=kept,
            engine="c",
            dtype=np.float64,
            low_memory=False,
        )
    except (ValueError, OSError):
        return None
    values: Float64 = table.to_numpy()
    return values if (np.abs(values) <= LARGEST).all() else None


def _read_careful(where: str, rows: str, text: SeriesText, named: bool, kept: range | None) -> Float64:
    """Read cell by cell, and name the first cell that is not a finite number in a column that is not missing."""
    filled = text.filled() if named else [(text.line, text.first), *text.filled()]
    try:
        table = pd.read_csv(
            BytesIO(rows.encode()),
            sep=text.separator,
            header=None,
            usecols=kept,
            engine="c",
            dtype=str,
            na_filter=False,
        )
    except (ValueError, OSError) as error:
        raise UserError(_broken(where, filled, text.separator, error)) from error
    numbers: Float64 = table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=np.float64)
    wrong = ~(np.abs(numbers) <= LARGEST)
    silent = [
        place for place, column in enumerate(table) if wrong[:, place].all() and table[column].map(is_missing).all()
    ]
    wrong[:, silent] = False
    bad = np.argwhere(wrong)
    if len(bad):
        row, column = bad[0]
        cell = str(table.iat[row, column])
        remedy = "write points for decimal commas" if DECIMAL_COMMA.fullmatch(cell) else "repair the file"
        line = f", line {filled[row][0]}" if len(table) == len(filled) else ""
        raise UserError(
            f"{where}{line}: expected a finite number in column {table.columns[column] + 1}, found {cell!r} "
            f"({len(bad)} such cells); {remedy} or drop the subject."
        )
    return numbers


def _broken(where: str, filled: Sequence[tuple[int, str]], separator: str, error: Exception) -> str:
    """Message on an unreadable table: its first row that is longer than the first."""
    widths = [(number, len(cells_of(line, separator))) for number, line in filled]
    for number, width in widths:
        if width > widths[0][1]:
            return (
                f"{where}, line {number}: expected rows of equal length, found {width} cells below {widths[0][1]}; "
                "repair the file or drop the subject."
            )
    return f"{where}: expected rows of equal length, found a broken table ({' '.join(str(error).split())}); repair it."
