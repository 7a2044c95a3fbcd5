"""Read a phenotype table as text, row by row: the csv module only, so that the Snakefile can list a cohort."""

import csv
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from brainfed.cohort.settings import ColumnSettings
from brainfed.runtime.errors import UserError

ALWAYS_MISSING = frozenset({"", "n/a", "N/A", "NA", "nan", "NaN"})


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        line: its line number in the file, the header's is 1.
        subject: the subject's id.
        cells: column -> text, None where the cell holds a missing code.
    """

    line: int
    subject: str
    cells: dict[str, str | None]


def read_phenotype_table(path: str | Path, columns: ColumnSettings, missing: Iterable[str] = ()) -> list[Row]:
    """All rows of a comma, semicolon or tab separated table, in ascending order of subject id.

    Raises:
        UserError: a configured column is absent, a row is ragged or has no id, an id appears twice,
            the file is not UTF-8 or holds no row.
    """
    absent = ALWAYS_MISSING | set(missing)
    rows: list[Row] = []
    for line, values in _records(path, columns):
        cells = {name: None if value.strip() in absent else value.strip() for name, value in values.items()}
        subject = cells[columns.subject]
        if subject is None and columns.subject_fallback is not None:
            subject = cells[columns.subject_fallback]
        if subject is None:
            raise UserError(
                f"{path}, line {line}: expected a subject id in column {columns.subject!r}, found "
                f"{values[columns.subject]!r}; fill it in or set columns.subject_fallback."
            )
        rows.append(Row(line, subject, cells))
    if not rows:
        raise UserError(f"{path}: expected one row a subject, found a header only; is it the whole table?")
    _refuse_duplicates(path, rows)
    return sorted(rows, key=lambda row: row.subject)


def _records(path: str | Path, columns: ColumnSettings) -> Iterable[tuple[int, dict[str, str]]]:
    """Line number and wanted cells of every non-blank line."""
    wanted = [name for name in vars(columns).values() if name is not None]
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.reader(file, delimiter=max(",;\t", key=first.count))
            header = [name.strip() for name in next(reader, [])]
            position = {name: _position(path, header, name) for name in wanted}
            for values in reader:
                if not any(value.strip() for value in values):
                    continue
                if len(values) != len(header):
                    raise UserError(
                        f"{path}, line {reader.line_num}: expected {len(header)} cells as in the header, "
                        f"found {len(values)}; mend the row (is a separator or a quote missing?)."
                    )
                yield reader.line_num, {name: values[at] for name, at in position.items()}
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: expected UTF-8 text, found another encoding ({error}); save it as UTF-8.") from error


def _position(path: str | Path, header: list[str], name: str) -> int:
    if header.count(name) == 1:
        return header.index(name)
    if header.count(name) > 1:
        raise UserError(f"{path}: expected one column {name!r}, found {header.count(name)}; rename all but one.")
    folded = {column.casefold(): column for column in reversed(header)}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    hint = f"did you mean {folded[near[0]]!r}?" if near else f"it has {', '.join(header[:8])} ..."
    raise UserError(f"{path}: expected a column {name!r}, found none; {hint} Set it under `columns`.")


def _refuse_duplicates(path: str | Path, rows: list[Row]) -> None:
    seen: dict[str, int] = {}
    for row in rows:
        if row.subject in seen:
            raise UserError(
                f"{path}: expected every subject once, found {row.subject!r} in lines {seen[row.subject]} and "
                f"{row.line}; remove one of them."
            )
        seen[row.subject] = row.line
