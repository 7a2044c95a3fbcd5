"""Read a table of confounds: named columns, or motion parameters without a header as of SPM, FSL and AFNI."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from brainfed.cohort.phenotype import PLAIN
from brainfed.imaging.scans import read_text
from brainfed.runtime import Float64, UserError

SEPARATORS = ("\t", ";", ",", None)
"""In the order in which the first of them in the first line is the separator; None: any blanks."""
MISSING = frozenset({"", "n/a", "N/A", "NA", "nan", "NaN", "NAN", "null", "NULL", "None", "#N/A"})
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
SHOWN = 12
"""Columns of a table that a sentence names."""
COSINES = "cosine"
"""Begin of the names of fMRIPrep's high-pass regressors."""


@dataclass(frozen=True)
class ConfoundTable:
    """Cells of a table.

    Attributes:
        names: of the columns; None for a table without a header.
        rows: text of the cells.
        lines: number of the line of each row.
    """

    names: tuple[str, ...] | None
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[int, ...]

    def as_text(self) -> str:
        """A tab-separated table with a header."""
        return "\n".join("\t".join(row) for row in (self.names or (), *self.rows)) + "\n"


@dataclass(frozen=True)
class Confounds:
    """Columns to regress out.

    Attributes:
        names: of the columns; numbers for a table without a header.
        values: (volumes, confounds), finite.
    """

    names: tuple[str, ...]
    values: Float64


def read_confounds(subject: str, file: str | Path, columns: Sequence[str], volumes: int) -> Confounds:
    """Columns of a table.

    The first row of temporal derivatives is n/a in fMRIPrep's tables; the second row's value replaces it.

    Args:
        columns: columns to read; empty: all.
        volumes: number of volumes of the scan, and of expected rows.

    Raises:
        UserError: the table cannot be read, a column is absent or not numeric, a value is missing beyond the first row,
            or the number of rows is not the scan's number of volumes.
    """
    where = f"Subject {subject}, {file}"
    table = read_confound_table(where, file, volumes)
    if columns and table.names is None:
        raise UserError(
            f"{where}: expected a header that names the confounds {', '.join(columns)}, found numbers alone; leave "
            "confound_columns out to regress out all columns, or add a header."
        )
    names = table.names or tuple(str(number) for number in range(1, len(table.rows[0]) + 1))
    absent = [column for column in columns if column not in names]
    if absent:
        has = ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
        raise UserError(
            f"{where}: expected the confounds {', '.join(absent)}, found none of that name among {has}; name columns "
            "of the table in confound_columns, or leave it out to regress out all."
        )
    chosen = tuple(columns) or names
    for name in chosen:
        if not name or names.count(name) > 1:
            fault = f"{name!r} {names.count(name)} times" if name else "one without a name (row numbers?)"
            raise UserError(
                f"{where}: expected every column named once, found {fault}; repair the header, or name the columns to "
                "use in confound_columns."
            )
    values = np.empty((len(table.rows), len(chosen)))
    for at, name in enumerate(chosen):
        place = names.index(name)
        values[:, at] = [_number(where, name, row[place]) for row in table.rows]
    if volumes > 1:
        values[0] = np.where(np.isnan(values[0]), values[1], values[0])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, at = bad[0]
        raise UserError(
            f"{where}, line {table.lines[row]}: expected a finite value in column {chosen[at]!r}, found a missing one; "
            "leave the column out or repair it."
        )
    return Confounds(chosen, values)


def read_confound_table(where: str, file: str | Path, volumes: int) -> ConfoundTable:
    """Cells of a UTF-8 or UTF-16 table that is separated by tabs, commas, semicolons or blanks.

    The first line is a header unless it holds numbers and there is one line a volume. Lines that begin with # are
    comments, but for one above the first row that names as many columns as the row has.

    Raises:
        UserError: the file is absent or no text, its rows differ in length, or there is not one row a volume.
    """
    marked, lines = _lines(where, file)
    separator = next(mark for mark in SEPARATORS if mark is None or mark in lines[0][1])
    rows = _even(
        where, [(number, _cells(line, separator)) for number, line in lines if separator == "\t" or line.strip()]
    )
    commas = [cell for _, cells in rows[:2] for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if commas:
        raise UserError(f"{where}: expected numbers with decimal points, found {commas[0]!r}; write points.")
    headless = all(_is_number(cell) for cell in rows[0][1])
    names: tuple[str, ...] | None = None
    if not headless or (len(rows) == volumes + 1 and _counts(rows[0][1])):
        names, rows = rows[0][1], rows[1:]
    elif marked and len(_cells(marked, separator)) == len(rows[0][1]):
        names = _cells(marked, separator)
    if len(rows) != volumes:
        raise UserError(f"{where}: expected {volumes} rows, one a volume, found {len(rows)}.")
    return ConfoundTable(names, tuple(cells for _, cells in rows), tuple(number for number, _ in rows))


def _lines(where: str, file: str | Path) -> tuple[str, list[tuple[int, str]]]:
    """The comment right above the first line with content, without its mark, and the number and text of all lines."""
    text = read_text(where, file, "a table of confounds")
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip(" ")]
    lines = [(number, line) for number, line in numbered if not line.lstrip().startswith("#")]
    if not lines:
        raise UserError(f"{where}: expected one row a volume, found an empty table; is it the whole file?")
    above = [line for number, line in numbered if number < lines[0][0]]
    return above[-1].lstrip().lstrip("#").strip() if above else "", lines


def _cells(line: str, separator: str | None) -> tuple[str, ...]:
    return tuple(cell.strip().strip('"') for cell in line.split(separator))


def _even(where: str, rows: list[tuple[int, tuple[str, ...]]]) -> list[tuple[int, tuple[str, ...]]]:
    """Rows of equal length; an empty last cell of lines that end with a separator is left out."""
    count = len(rows[0][1])
    trailing = [cells[-1] == "" and len(cells) in (count, count + 1) for _, cells in rows]
    if count > 1 and all(trailing) and len(rows) > 1:
        rows = [(number, cells[:-1]) for number, cells in rows]
    elif all(trailing[1:]) and len(rows) > 1 and all(len(cells) == count + 1 for _, cells in rows[1:]):
        rows = [rows[0], *((number, cells[:-1]) for number, cells in rows[1:])]
    count = len(rows[0][1])
    for number, cells in rows:
        if len(cells) != count:
            raise UserError(
                f"{where}, line {number}: expected {count} cells as in line {rows[0][0]}, found {len(cells)}; repair "
                "the table."
            )
    return rows


def _is_number(cell: str) -> bool:
    return cell in MISSING or PLAIN.fullmatch(cell) is not None


def _counts(cells: Sequence[str]) -> bool:
    """Whether a line numbers its columns: 0, 1, 2 or 1, 2, 3."""
    return list(cells) in ([str(start + number) for number in range(len(cells))] for start in (0, 1))


def _number(where: str, name: str, cell: str) -> float:
    if not _is_number(cell):
        raise UserError(f"{where}: expected numbers in column {name!r}, found text ({cell[:20]!r}); leave it out.")
    return math.nan if cell in MISSING else float(cell)
