"""Files of region series as text: lines, and whether the first names the regions or is a volume."""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from brainfed.cohort.phenotype import EXCEL_SEPARATOR, PLAIN, excel_line
from brainfed.imaging.scans import read_text
from brainfed.runtime import UserError

BLANKS = r"\s+"
"""The separator of a file without commas, semicolons, tabs and bars in its first line."""
MARKS = ",;\t|"
BARS = re.compile(r"\s*\|.*\|[ \t]*(\n|$)")
"""A first line between bars, as tables of databases and of Markdown have them."""
RULE = re.compile(r"\s*[|+]?([ :]*-+[ :]*[|+]?)+\s*")
"""A line of dashes below the names of such a table."""
QUOTED = re.compile(r'"[^"]*"')
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
AFNI_COMMENT = re.compile(r"#\s*<")


@dataclass(frozen=True)
class SeriesText:
    """Text of a file.

    Attributes:
        first: first line that is neither blank nor a comment: a line of names may begin with #.
        line: its number, counted from 1.
        rest: everything below it, lines ended by a line feed.
        separator: separator of cells, one of `MARKS` or `BLANKS`.
    """

    first: str
    line: int
    rest: str
    separator: str

    @property
    def second(self) -> str:
        """First line of the rest that is not blank; empty if there is none."""
        return next((line for _, line in self.filled()), "")

    def filled(self) -> "list[tuple[int, str]]":
        """Number and text of every line below the first that is not blank."""
        blanks = " " if self.separator == "\t" else " \t"
        numbered = enumerate(self.rest.split("\n"), start=self.line + 1)
        return [(number, line) for number, line in numbered if line.strip(blanks)]


def read_series_text(subject: str, file: str | Path) -> SeriesText:
    """Read a UTF-8 or UTF-16 file with line ends of any kind; comments above and below the rows are left out.

    Raises:
        UserError: the file is absent, empty or not text, has decimal commas, or begins with Excel's `sep=`.
    """
    where = f"Subject {subject}, {file}"
    text = read_text(where, file, "a text file of region series")
    text, skipped = _without_comments(where, text) if "#" in text else (text, 0)
    above = skipped + text[: len(text) - len(text.lstrip(" \t\n"))].count("\n")
    if BARS.match(text):
        text = "\n".join("" if RULE.fullmatch(line) else _unframed(line) for line in text.split("\n"))
    first, _, rest = text.lstrip("\n \t").partition("\n")
    if not first:
        raise UserError(f"{where}: expected rows of numbers, found an empty file; is it the whole file?")
    if EXCEL_SEPARATOR.fullmatch(first.strip()):
        raise UserError(f"{where}, line {above + 1}: expected region names or numbers, found {excel_line(first)}.")
    below = rest.lstrip("\n \t").partition("\n")[0]
    for number, line in ((above + 1, first), (above + 2, below)):
        if has_decimal_commas(line):
            raise UserError(
                f"{where}, line {number}: expected numbers with decimal points, found decimal commas, "
                f"{line.strip()[:40]!r}; write points."
            )
    return SeriesText(first, above + 1, rest, _separator(first, below))


def cells_of(line: str, separator: str) -> list[str]:
    """Cells of one line without surrounding blanks and quotes; a quoted cell may hold the separator."""
    if separator == BLANKS:
        if '"' not in line:
            return line.split()
        spaced = " ".join(line.split())
        return [cell for cell in next(csv.reader([spaced], delimiter=" "), []) if cell]
    row = next(
        csv.reader(
            [line.strip(" ") if separator != "\t" else line.rstrip()], delimiter=separator, skipinitialspace=True
        ),
        [],
    )
    return [cell.strip() for cell in row]


def has_decimal_commas(line: str) -> bool:
    """Whether the cells between semicolons, tabs or blanks are numbers, at least one with a comma in it."""
    for mark in (";", "\t", None) if "," in line else ():
        cells = [cell.strip() for cell in line.split(mark)]
        commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
        if len(cells) > 1 and commas and all(cell in commas or PLAIN.fullmatch(cell) for cell in cells):
            return True
    return False


def _without_comments(where: str, text: str) -> tuple[str, int]:
    """The text from its line of names or first row on to its last row, and the number of lines above.

    Raises:
        UserError: there are comments alone.
    """
    lines = text.split("\n")
    filled = [number for number, line in enumerate(lines) if line.strip()]
    rows = [number for number in filled if not lines[number].lstrip().startswith("#")]
    comments = [number for number in filled if not rows or number < rows[0]]
    if not rows:
        raise UserError(
            f"{where}: expected rows of numbers, found lines that begin with # alone; is it the whole file?"
        )
    start = comments[-1] if comments and _names(lines[comments[-1]], lines[rows[0]]) else rows[0]
    end = rows[-1] + 1
    return "\n".join([*lines[start:end], *("" for _ in lines[end:])]), start


def _names(comment: str, row: str) -> bool:
    """Whether the last line with # above the first row names regions: one a column, or each with a mark (#1 #2)."""
    if AFNI_COMMENT.match(comment):
        return False
    bare = comment.strip().lstrip("# ")
    separator = _separator(row, bare)
    names, cells = cells_of(bare, separator), cells_of(row, separator)
    return len(names) == len(cells) or (len(names) > 1 and all(name.startswith("#") for name in names[1:]))


def bare_rows(rows: str, separator: str, columns: int | None) -> str:
    """Rows without the separators that end all of them.

    Args:
        separator: one of `MARKS` or `BLANKS`.
        columns: number of columns where it is known: rows that have it with an empty last cell keep that cell.
    """
    top = rows.lstrip("\n ").partition("\n")[0]
    if separator == BLANKS or not top.rstrip(" ").endswith(separator):
        return rows
    lines = rows.split("\n")
    ends = [line[len(line.rstrip(f"{separator} ")) :] for line in lines if line.strip(" ")]
    least = min(end.count(separator) for end in ends)
    if not least or (columns is not None and top.count(separator) + 1 <= columns):
        return rows
    return "\n".join(_cut(line, separator, least) for line in lines)


def _unframed(line: str) -> str:
    return line.strip().removeprefix("|").removesuffix("|")


def _cut(line: str, separator: str, count: int) -> str:
    for _ in range(count if line.strip() else 0):
        line = line.rstrip(" ").removesuffix(separator)
    return line


def _separator(first: str, second: str) -> str:
    """Mark with equal counts in both lines outside quotes, else the most frequent mark of the first line."""
    bare = QUOTED.sub("", first)
    marks = [mark for mark in MARKS if mark in bare]
    agreeing = [mark for mark in marks if bare.count(mark) == second.count(mark)]
    return max(agreeing or marks, key=bare.count, default=BLANKS)


# Decide whether the first line of a text file of series names the regions or is a volume.
#
# The cohort's `header: true` or `false` decides, but fractions are no names. Without it, the first line and the lines
# below it do:
#
# | first line | lines below | it is |
# |---|---|---|
# | words, or anything after # | any | a header |
# | words, and numbers with a fraction or missing codes | any | refused |
# | words and integers | mostly fractions | a header |
# | words and integers | mostly integers | refused |
# | a number with a fraction, NaN or infinity | any | a volume |
# | one integer in all of two columns or more (0 0 0) | any | a volume |
# | the indices of the region table, in any order | any | a header (whose order must be the table's) |
# | integers, one of them twice, or one with a sign | mostly fractions | refused |
# | integers, one of them twice, or one below zero | mostly integers | a volume |
# | 0 1 2 ... or 1 2 3 ... | do not go on ascending | a header that counts |
# | other integers, 5 or more, ascending | mostly fractions | a header |
# | other integers, ascending | mostly integers, or fewer than 5 columns | refused |
# | other integers, not ascending | mostly fractions | refused |
# | other integers, not ascending | mostly integers, most columns beyond the first value | a volume |
# | other integers, not ascending | mostly integers, most columns on one side of the first value | refused |
# | two integers | mostly integers | a volume |
#
# An integer is a whole value in any notation: 2001, 2001.0, 2.001e3. A header with these names reads 2001.
# Below integers without a decimal point, a number with one counts as a fraction, also 7.0; else its value decides.
# Five integers ascend by chance once in 120 volumes, twenty practically never. A table of integers (scanner units) has
# integers in all volumes, so ascending integers need a second sign there.

MISSING = frozenset({"", "n/a", "na", "null", "none", "-", "."})
NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
FEWEST_COUNTED = 3
"""Fewest columns of integer labels above integers."""
FEWEST_ASCENDING = 5
"""Fewest columns of ascending integer labels above fractions."""
ROWS_COMPARED = 50
SHOWN = 4


def read_header(
    subject: str, file: object, text: SeriesText, given: bool | None, indices: Sequence[int] | None
) -> tuple[str, ...]:
    """Read the names in the first line without their `#`; empty if the line is a volume.

    Args:
        given: the cohort's setting `header`; None: the rule above decides.
        indices: indices of the cohort's region table in its order; None without a table.

    Raises:
        UserError: the line may be both, or is neither.
    """
    if given is False:
        return ()
    where = f"Subject {subject}, {file}, line {text.line}"
    commented = text.first.startswith("#")
    cells = _without_ends(cells_of(text.first.lstrip("# "), text.separator), cells_of(text.second, text.separator))
    numeric = [is_number(cell) and not commented for cell in cells]
    names = tuple(cell.lstrip("#").strip() for cell in cells)
    if all(numeric) and given and _whole(cells) is None:
        number = next(cell for cell in cells if _whole([cell]) is None)
        raise UserError(
            f"{where}: expected region names, as the cohort has `header: true`, found the number {number!r}; set "
            "`header: false`, this line is the first volume."
        )
    if all(numeric) and not given and not _is_label_line(where, cells, text, indices):
        return ()
    if not all(numeric) and any(numeric) and not given and _are_missing_throughout(cells, numeric, text):
        return ()
    if not all(numeric) and len(names) > 1:
        _refuse_gaps(where, names, any(numeric))
        if any(numeric) and not given:
            _refuse_mixture(where, cells, numeric, text)
    if _whole(names) is not None:
        # 2001 for 2001.0, 2.001e3 and +2001; digits are unchanged.
        names = tuple(name if name.isdigit() else str(int(float(name))) for name in names)
    counted = [tuple(str(start + place) for place in range(len(names))) for start in (0, 1)]
    return counted[1] if names in counted else names


def is_missing(cell: str) -> bool:
    """Whether a cell is a code of a missing value, or NaN."""
    return cell.casefold() in MISSING or cell.lower().lstrip("+-") == "nan"


def is_number(cell: str) -> bool:
    """Whether a cell is a decimal number, finite or not."""
    return bool(PLAIN.fullmatch(cell) or NOT_FINITE.fullmatch(cell))


def _without_ends(cells: list[str], below: Sequence[str]) -> list[str]:
    """Cells of the first line without the empty ones at its end that the row below does not fill either."""
    while len(cells) > 1 and not cells[-1] and not "".join(below[len(cells) - 1 : len(cells)]):
        cells = cells[:-1]
    return cells


def _are_missing_throughout(cells: Sequence[str], numeric: Sequence[bool], text: SeriesText) -> bool:
    """Whether the cells of a first line that are no numbers are missing in every line: regions without a signal."""
    places = [place for place, is_number in enumerate(numeric) if not is_number]
    if not all(is_missing(cells[place]) for place in places):
        return False
    rows = [cells_of(line, text.separator) for _, line in text.filled()]
    return bool(rows) and all(place < len(row) and is_missing(row[place]) for row in rows for place in places)


def _is_label_line(where: str, cells: Sequence[str], text: SeriesText, indices: Sequence[int] | None) -> bool:
    """Whether a line of numbers holds labels.

    Raises:
        UserError: the line may also be a volume.
    """
    labels = _whole(cells)
    if labels is None or len(set(labels)) == 1 < len(labels):
        return False
    fractions = _mostly_points(text, len(cells)) if _are_digits(cells) else _mostly_parts(text)
    if len(labels) < FEWEST_COUNTED and not fractions:
        return False
    if indices is not None and sorted(labels) == sorted(indices):
        return True
    twice = len(set(labels)) < len(labels)
    if fractions and (twice or any(cell[0] in "+-" for cell in cells)):
        raise _either(where, cells)
    if twice or min(labels) < 0:
        return False
    ascending = _ascends(labels)
    if (
        labels[0] in (0, 1)
        and labels[-1] - labels[0] == len(labels) - 1
        and ascending
        and len(labels) >= FEWEST_COUNTED
    ):
        if not _goes_on(cells, cells_of(text.second, text.separator)):
            return True
    elif ascending and fractions and len(labels) >= FEWEST_ASCENDING:
        return True
    if ascending or fractions or _stands_apart(labels, text):
        raise _either(where, cells)
    return False


def _either(where: str, cells: Sequence[str]) -> UserError:
    shown = " ".join(cells[:SHOWN]) + (" ..." if len(cells) > SHOWN else "")
    return UserError(
        f"{where}: expected region names or a volume, found integers that may be either ({shown}); set "
        "`header: true` for the cohort if they are labels, `header: false` if they are the first volume."
    )


def _are_digits(cells: Sequence[str]) -> bool:
    return all(cell.isascii() and cell.isdigit() for cell in cells)


def _whole(cells: Sequence[str]) -> list[float] | None:
    """Values of cells that are all whole numbers in any notation; else None."""
    if not all(PLAIN.fullmatch(cell) and float(cell).is_integer() for cell in cells):
        return None
    return [float(cell) for cell in cells]


def _ascends(labels: Sequence[float]) -> bool:
    return all(first < second for first, second in pairwise(labels))


def _goes_on(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the line below has the same notation and ascends from a larger value: a ramp."""
    below = _whole(second)
    if not below or _are_digits(first) != _are_digits(second):
        return False
    return _ascends(below) and below[0] > float(first[0])


def _stands_apart(labels: Sequence[float], text: SeriesText) -> bool:
    """Whether, in most columns, all values below the first line are on one side of its value."""
    rows = [cells_of(line, text.separator) for _, line in text.filled()[:ROWS_COMPARED]]
    values = [_whole(row) for row in rows]
    if None in values or any(len(row) != len(rows[0]) for row in rows):
        return False
    columns = list(zip(*[row for row in values if row is not None], strict=True))
    apart = sum(not min(column) <= label <= max(column) for label, column in zip(labels, columns, strict=False))
    return bool(rows) and apart > len(labels) / 2


def _mostly_points(text: SeriesText, columns: int) -> bool:
    """Whether more than half of the cells below the first line have a decimal point."""
    return text.rest.count(".") > columns * len(text.filled()) / 2


def _mostly_parts(text: SeriesText) -> bool:
    """Whether more than half of the cells below the first line are not whole numbers."""
    cells = [cell for _, line in text.filled() for cell in cells_of(line, text.separator)]
    return sum(_whole([cell]) is None for cell in cells) > len(cells) / 2


def _refuse_gaps(where: str, names: Sequence[str], some_numbers: bool) -> None:
    for place, name in enumerate(names, start=1):
        if not name or (some_numbers and name.casefold() in MISSING):
            raise UserError(
                f"{where}: expected a name or a finite number in every column, found {name!r} in column {place}; fill "
                "it in, or remove the column if it counts the rows."
            )


def _refuse_mixture(where: str, cells: Sequence[str], numeric: Sequence[bool], text: SeriesText) -> None:
    numbers = [cell for cell, is_one in zip(cells, numeric, strict=True) if is_one]
    if _mostly_points(text, len(cells)) and all(cell.isdigit() for cell in numbers):
        return
    word = cells[list(numeric).index(False)]
    raise UserError(
        f"{where}: expected region names or numbers, found both ({word!r} and {numbers[0]!r}); repair the line, or set "
        "`header: true` for the cohort if all are names."
    )
