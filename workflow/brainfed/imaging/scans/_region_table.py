"""Text files beside scans, and the names and labels of a parcellation's regions."""

import csv
import re
from pathlib import Path

import numpy as np

from brainfed.cohort.phenotype import decoded, foreign_content
from brainfed.runtime import IntArray, UserError

COLUMNS = ("index", "name")
SEPARATORS = "\t,;"
"""In the order in which the first of them in the header is the separator."""
BACKGROUND = re.compile(r"0+(\.0*)?")
INDEX = re.compile(r"0*([1-9][0-9]{0,8})(\.0*)?")

POINTERS = (b"/annex/objects/", b"version https://git-lfs.github.com/spec/")
"""First bytes of the files that git-annex and Git LFS leave in place of a content that was not fetched."""


def read_text(
    where: str, file: str | Path, expected: str, remedy: str = "check the path and save the text as UTF-8"
) -> str:
    """The text of a UTF-8 or UTF-16 file, lines ended by a line feed.

    Raises:
        UserError: the file is absent, or no text, as spreadsheets and what git-annex and Git LFS leave are none.
    """
    try:
        content = Path(file).read_bytes()
        if content.startswith(POINTERS):
            raise UserError(
                f"{where}: expected {expected}, found a pointer to a content that was not fetched; run `git annex get` "
                "or `git lfs pull` there."
            )
        if foreign := foreign_content(content):
            raise UserError(f"{where}: expected {expected}, found {foreign}.")
        text = decoded(content)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{where}: expected {expected}, found an unreadable one ({error}); {remedy}.") from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def read_region_table(table: str | Path) -> tuple[IntArray, tuple[str, ...]]:
    """Labels and names of a region table with the columns index and name, separated by tabs, commas or semicolons.

    A row with index 0 is the background, which is no region.

    Raises:
        UserError: the file is not a text table, a column is absent, it has no row, a row has another number of cells
            than the header, an index is not a positive integer, a name is empty, or an index or name appears twice.
    """
    header, rows = _rows(table)
    columns = [name.strip().lower() for name in header]
    absent = [column for column in COLUMNS if column not in columns]
    if absent:
        raise UserError(
            f"{table}: expected the columns index and name, separated by tabs or commas, found {', '.join(header)}; "
            f"add {' and '.join(absent)}."
        )
    places = [columns.index(column) for column in COLUMNS]
    labels: dict[int, str] = {}
    named: set[str] = set()
    for line, cells in rows:
        if len(cells) != len(header):
            raise UserError(
                f"{table}, line {line}: expected {len(header)} cells as in the header, found {len(cells)}; repair the "
                "row."
            )
        index, name = (cells[place].strip() for place in places)
        if BACKGROUND.fullmatch(index):
            continue
        if not name:
            raise UserError(f"{table}, line {line}: expected a name for region {index!r}, found none; give it one.")
        whole = INDEX.fullmatch(index)
        if not whole:
            raise UserError(f"{table}, line {line}: expected a positive whole number as index, found {index!r}.")
        label = int(whole[1])
        for column, twice, value in (("index", label in labels, str(label)), ("name", name in named, name)):
            if twice:
                raise UserError(f"{table}: expected every {column} once, found {value!r} again; rename one.")
        labels[label] = name
        named.add(name)
    if not labels:
        raise UserError(f"{table}: expected one row a region, found none; is it the whole table?")
    return np.fromiter(labels, dtype=np.int64), tuple(labels.values())


def _rows(table: str | Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The header, and number and cells of every further line that is not blank."""
    expected = "a tab-separated text table with the columns index and name"
    lines = read_text(str(table), table, expected, "save it as UTF-8 text").split("\n")
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        raise UserError(f"{table}: expected {expected}, found an empty file; is it the whole table?")
    separator = next((mark for mark in SEPARATORS if mark in first), "\t")
    reader = csv.reader(lines, delimiter=separator)
    filled = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    return filled[0][1], filled[1:]
