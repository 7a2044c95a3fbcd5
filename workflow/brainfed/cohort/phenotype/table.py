"""Read phenotype tables as text, row by row, with the csv module only, as the Snakefile lists cohorts."""

import csv
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from brainfed.cohort.phenotype.text import read_table_text
from brainfed.cohort.settings.cohort import ColumnSettings
from brainfed.runtime.errors import Refuse, UserError, raise_at_once

ALWAYS_MISSING = frozenset({"", "n/a", "N/A", "NA", "nan", "NaN"})
SEPARATORS = ",;\t"
DECIMAL_COMMA = re.compile(r"-?\d+,\d+")


@dataclass(frozen=True)
class Row:
    """One line of a table.

    Attributes:
        line: line number in the file; the header has 1.
        subject: id.
        cells: column -> text, None where the cell holds a missing code.
        table: path of the file.
    """

    line: int
    subject: str
    cells: dict[str, str | None]
    table: str = ""


def read_phenotype_table(
    path: str | Path | Sequence[str | Path],
    columns: ColumnSettings,
    missing: Iterable[str] = (),
    refuse: Refuse = raise_at_once,
    wanted: Mapping[str, Collection[str]] | None = None,
) -> list[Row]:
    """Read the rows of one or several tables, in ascending order of subject id.

    Separators are commas, semicolons or tabs. In a table with semicolons or tabs, commas in ages and displacements are
    decimal commas if none of these has a decimal point (a European csv). Each of several tables may lack the column
    `subject` if it has `subject_fallback`.

    Args:
        path: of the table, or of several.
        columns: names of the wanted columns.
        missing: codes that mean missing, beside the usual ones.
        refuse: called with the mistake of a single row, which is left out.
        wanted: column -> values of the rows to read; none: all rows.

    Raises:
        UserError: a configured column is absent; a row is ragged or has no id; an id appears twice or holds an
            invisible character; a file is an Excel workbook, is empty or holds no row; a cell to read is not UTF-8.
    """
    tables = [path] if isinstance(path, str | Path) else list(path)
    absent = ALWAYS_MISSING | set(missing)
    alone = len(tables) == 1
    rows = [row for table in tables for row in _rows(table, columns, absent, refuse, wanted or {}, alone=alone)]
    rows.sort(key=lambda row: row.subject)
    return [*_without_duplicates(rows, refuse)]


def _rows(
    path: str | Path,
    columns: ColumnSettings,
    absent: Iterable[str],
    refuse: Refuse,
    wanted: Mapping[str, Collection[str]],
    *,
    alone: bool,
) -> list[Row]:
    rows: list[Row] = []
    separator, records = _records(path, columns, refuse, list(wanted), alone=alone)
    ignored = 0
    for line, values in records:
        if not all(values[name].strip() in allowed for name, allowed in wanted.items()):
            ignored += 1
            continue
        cells = {name: None if value.strip() in absent else value.strip() for name, value in values.items()}
        subject = next((cell for name in columns.ids if (cell := cells.get(name)) is not None), None)
        if subject is None:
            refuse(
                UserError(
                    f"{path}, line {line}: expected a subject id in column {columns.subject!r}, found "
                    f"{values.get(columns.subject, 'no such column')!r}; fill it in or set columns.subject_fallback."
                )
            )
            continue
        if not subject.isprintable():
            refuse(
                UserError(
                    f"{path}, line {line}: expected a subject id of visible characters, found {subject!a}; type it "
                    "again (a spreadsheet or a web page pastes invisible ones)."
                )
            )
            continue
        rows.append(Row(line, subject, cells, str(path)))
    if not rows and ignored:
        raise UserError(f"{path}: expected rows with {_listed_values(wanted)}, found none among {ignored}; fix `rows`.")
    if not rows:
        raise UserError(f"{path}: expected one row a subject, found a header only; is it the whole table?")
    return rows if separator == "," else _with_decimal_points(rows, [columns.age, columns.mean_fd])


def _listed_values(wanted: Mapping[str, Collection[str]]) -> str:
    return " and ".join(f"{name} among {', '.join(map(repr, allowed))}" for name, allowed in wanted.items())


def _records(
    path: str | Path, columns: ColumnSettings, refuse: Refuse, more: Sequence[str], *, alone: bool
) -> tuple[str, Iterator[tuple[int, dict[str, str]]]]:
    """Separator, and line number and wanted cells of every non-blank line."""
    text = read_table_text(path)
    separator = max(SEPARATORS, key=lambda mark: len(next(csv.reader(text.lines[:1], delimiter=mark), [])))
    reader = csv.reader(text.lines, delimiter=separator)
    header = [name.strip() for name in next(reader, [])]
    if not any(header):
        raise UserError(f"{path}: expected a header in the first line, found an empty one; remove the blank lines.")
    wanted = dict.fromkeys([*columns.named, *more])
    if not alone and {name.strip() for name in columns.ids} & set(header):
        wanted = dict.fromkeys(
            name for name in wanted if name.strip() in header or name in more or not _is_id(name, columns)
        )
    position = {name: _position(path, header, name) for name in wanted}
    numbered = ((reader.line_num, values) for values in reader)
    cells = _cells(path, numbered, len(header), position, refuse)
    return separator, cells if text.certain else _ascii(path, cells, refuse)


def _is_id(name: str, columns: ColumnSettings) -> bool:
    """Whether a column only names the subject."""
    return name in columns.ids and name != columns.file


def _cells(
    path: str | Path, numbered: Iterator[tuple[int, list[str]]], width: int, position: dict[str, int], refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    line = 1
    try:
        for line, values in numbered:
            if not any(value.strip() for value in values):
                continue
            if len(values) != width:
                refuse(
                    UserError(
                        f"{path}, line {line}: expected {width} cells as in the header, found {len(values)}; fix the "
                        "row (is a separator or a quote missing?)."
                    )
                )
                continue
            yield line, {name: values[at] for name, at in position.items()}
    except csv.Error as error:
        raise UserError(
            f"{path}, after line {line}: expected a row of cells, found none ({error}); fix it (is a quote missing?)."
        ) from error


def _ascii(
    path: str | Path, records: Iterator[tuple[int, dict[str, str]]], refuse: Refuse
) -> Iterator[tuple[int, dict[str, str]]]:
    """Records of a file of unknown encoding; a wanted cell that depends on the encoding is refused."""
    for line, values in records:
        foreign = [name for name, value in values.items() if not value.isascii()]
        if foreign:
            refuse(
                UserError(
                    f"{path}, line {line}: expected UTF-8 text in column {foreign[0]!r}, found {values[foreign[0]]!r} "
                    "in another encoding (perhaps Latin-1 or Windows-1252, as Excel saves it); save the table as UTF-8."
                )
            )
            continue
        yield line, values


def _position(path: str | Path, header: list[str], column: str) -> int:
    name = column.strip()
    if header.count(name) == 1:
        return header.index(name)
    if header.count(name) > 1:
        raise UserError(f"{path}: expected one column {name!r}, found {header.count(name)}; rename all but one.")
    folded = {known.casefold(): known for known in reversed(header)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[near[0]]!r}?" if near else f"it has {', '.join(header[:8])} ..."
    raise UserError(f"{path}: expected a column {name!r}, found none; {hint} Set it under `columns`.")


def _with_decimal_points(rows: list[Row], numbers: Sequence[str | None]) -> list[Row]:
    """Rows with points for decimal commas; unchanged if a number already has a point."""
    columns = [name for name in numbers if name is not None]
    held = [cell for row in rows for cell in map(row.cells.get, columns) if cell is not None]
    if any("." in cell for cell in held) or not any(map(DECIMAL_COMMA.fullmatch, held)):
        return rows
    return [
        replace(row, cells=row.cells | {name: _with_point(row.cells.get(name)) for name in columns}) for row in rows
    ]


def _with_point(cell: str | None) -> str | None:
    return cell.replace(",", ".") if cell is not None and DECIMAL_COMMA.fullmatch(cell) else cell


def _without_duplicates(rows: list[Row], refuse: Refuse) -> Iterator[Row]:
    """First row of every subject; `rows` are in ascending order of subject."""
    for _, same in groupby(rows, key=lambda row: row.subject):
        first, *others = same
        yield first
        for second in others:
            refuse(UserError(_duplicate(first, second)))


def _duplicate(first: Row, second: Row) -> str:
    where = f"lines {first.line} and {second.line}"
    if first.table != second.table:
        where = f"line {first.line} and in {second.table}, line {second.line}"
    other = [name for name, cell in first.cells.items() if second.cells.get(name) != cell]
    difference = f"which differ in {other[0]!r}" if other else "which are equal"
    return f"{first.table}: expected every subject once, found {first.subject!r} in {where}, {difference}; remove one."
