"""A participant from one row of a phenotype table, and the columns that jobs read of it."""

import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from brainfed.cohort import NO_NUMBERS
from brainfed.cohort.phenotype._table import ALWAYS_MISSING, PER_YEAR, Row
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.runtime import UserError

Values = dict[str, list[Any]]
"""`subject` and columns -> the value of every subject; None where unknown."""
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def plain_number(text: str) -> float:
    """Value of a decimal number, else a ValueError; float() also takes 1_0, words for infinity and other digits."""
    if not PLAIN.fullmatch(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


# Mean framewise displacement of a subject, from fMRIPrep's tables of confounds.

COLUMN = "framewise_displacement"


def mean_displacement(files: Sequence[str | Path]) -> float:
    """Mean over the acquired volumes of all files in mm, scrubbed ones included; NaN where it is not known.

    The first volume of a run has no displacement (n/a). A table that cannot be read leaves the mean unknown;
    `displacement_problem` names the cause. The extraction of images refuses such a table by itself.
    """
    try:
        values = [value for file in files for value in _displacements(file)]
    except UserError:
        return math.nan
    return math.fsum(values) / len(values) if values else math.nan


def displacement_problem(subject: str, files: Sequence[str | Path]) -> str:
    """Cause in one sentence, if the displacement of a subject cannot be read; else empty."""
    try:
        for file in files:
            _displacements(file)
    except UserError as error:
        return f"Subject {subject}, {error}"
    return ""


def _displacements(file: str | Path) -> list[float]:
    """Displacements of one table in any encoding (header and numbers are ASCII); a UserError where it has others."""
    try:
        with Path(file).open(encoding="utf-8-sig", errors="replace", newline="") as table:
            cells = [(row.get(COLUMN) or "").strip() for row in csv.DictReader(table, delimiter="\t")]
    except (OSError, csv.Error) as error:
        raise UserError(
            f"{file}: expected a table of confounds, found an unreadable file ({error}); repair it."
        ) from error
    return [_displacement(file, line, cell) for line, cell in enumerate(cells, start=2) if cell not in ALWAYS_MISSING]


def _displacement(file: str | Path, line: int, cell: str) -> float:
    try:
        value = plain_number(cell)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UserError(
            f"{file}, line {line}: expected a displacement in mm in column {COLUMN!r}, found {cell!r}; run fMRIPrep "
            "again or repair the table."
        )
    return value


# A participant from one row of a phenotype table: codes are mapped, numbers checked.
#
# The Snakefile imports this, so that an unknown code stops the run at its start, not after the first job.

OLDEST = 120.0
"""Years."""
ONE_SITE = "single-site"
"""Site of all subjects of a table without one."""
LARGEST_MEAN_FD = 100.0


@dataclass(frozen=True)
class Participant:
    """Phenotype of one subject; None or NaN where unknown.

    Attributes:
        site: name of the acquisition site.
        age: years.
        sex: `male` or `female`; unknown under the target sex.
        diagnosis: code of the target's class: 1 patient, 0 control; under the target sex 1 male, 0 female; of named
            classes their position; unknown if `excluded`, as the diagnosis takes the subject out of the cohort.
        mean_fd: mm.
    """

    site: str
    age: float
    sex: str | None
    diagnosis: int | None
    mean_fd: float
    excluded: bool = False


def read_participant(row: Row, settings: CohortSettings) -> Participant:
    """The participant of one row, by a cohort's columns, codes, target and classes.

    Raises:
        UserError: the site is missing, a code is unknown, or a number is malformed or out of range.
    """
    where = f"{row.table}, line {row.line}, subject {row.subject}"
    columns, codes = settings.columns, settings.codes
    unit = columns.age_unit or "years"
    diagnosis = _meaning(where, row, columns.diagnosis, "diagnosis", codes.diagnosis)
    sex = _meaning(where, row, columns.sex, "sex", codes.sex)
    site = _site(where, row, columns.site)
    excluded, by_sex = diagnosis == "excluded", settings.target == "sex"
    labels = {name: label for label, name in enumerate(settings.class_names)}
    return Participant(
        site=codes.site.get(site, site),
        age=_number(where, row, columns.age, f"age in {unit}", OLDEST * PER_YEAR[unit]) / PER_YEAR[unit],
        sex=None if by_sex else sex,
        diagnosis=None if excluded else labels.get((sex if by_sex else diagnosis) or ""),
        mean_fd=_number(where, row, columns.mean_fd, "mean framewise displacement in mm", LARGEST_MEAN_FD),
        excluded=excluded,
    )


def _site(where: str, row: Row, column: str | None) -> str:
    if column is None:
        return ONE_SITE
    site = row.cells[column]
    if site is None:
        cell = f"{row.absent[column]!r}, which means missing" if column in row.absent else "none"
        raise UserError(
            f"{where}: expected a site in column {column!r}, found {cell}; fill it in, or leave the row out "
            "with `rows`."
        )
    return site


def _meaning(where: str, row: Row, column: str | None, what: str, codes: Mapping[str, str]) -> str | None:
    code = None if column is None else row.cells[column]
    if code is None:
        return None
    if code not in codes:
        allowed = ", ".join(f"{known!r} ({meaning})" for known, meaning in codes.items())
        numbers = f" if it is a code, as {NO_NUMBERS}" if what == "diagnosis" and _is_number(code) else ""
        raise UserError(
            f"{where}: expected a {what} code in column {column!r} among {allowed}, found {code!r}; add it under "
            f"codes.{what}{numbers}, or under `missing`."
        )
    return codes[code]


def _is_number(code: str) -> bool:
    try:
        float(code)
    except ValueError:
        return False
    return True


def _number(where: str, row: Row, column: str | None, what: str, largest: float) -> float:
    text = None if column is None else row.cells[column]
    if text is None:
        return math.nan
    try:
        value = plain_number(text)
    except ValueError:
        remedy = (
            "it has a decimal comma, write a point" if _is_decimal_comma(text) else "fix it or list it in `missing`"
        )
        raise UserError(
            f"{where}: expected the {what} as a number in column {column!r}, found {text!r}; {remedy}."
        ) from None
    if not 0 <= value <= largest:
        months = what == "age in years" and largest < value <= largest * PER_YEAR["months"] and len({*text}) > 1
        unit = ", or set `columns.age_unit: months` if the whole column is in months" if months else ""
        raise UserError(
            f"{where}: expected the {what} between 0 and {largest:g} in column {column!r}, found {text!r}; fix it, or "
            f"list it in `missing` if it is a missing code{unit}."
        )
    return value


def _is_decimal_comma(text: str) -> bool:
    whole, comma, fraction = text.partition(",")
    return bool(comma) and whole.lstrip("-").isdigit() and fraction.isdigit()


# Columns of the participants by which a job says what it reads: another cell of a column runs its readers again.

FIELDS: Mapping[str, tuple[str, ...]] = {
    "site": ("site",),
    "age": ("age",),
    "sex": ("sex",),
    "diagnosis": ("diagnosis",),
    "labelled": ("labelled",),
    "mean_fd": ("mean_fd", "fd_source", "fd_problem"),
    "series": ("has_series", "absence"),
}
"""Name of a column -> fields of a table that has it. `labelled`: whether the diagnosis is known, not which it is."""
ALL = tuple(name for name in FIELDS if name != "labelled")
"""The columns of `participants.parquet`."""


def in_order(columns: Iterable[str]) -> tuple[str, ...]:
    """These columns, each once, in the order of all; a ValueError if there is no such column."""
    named = set(columns)
    if strangers := sorted(named - set(FIELDS)):
        raise ValueError(f"expected columns among {', '.join(FIELDS)}, found {strangers[0]!r}")
    return tuple(name for name in FIELDS if name in named)


def values_of(people: Iterable[tuple[str, Participant, str]], columns: Iterable[str]) -> Values:
    """The values of the columns (names in `FIELDS`) of people: subject, phenotype, reason for an absent series."""
    chosen = in_order(columns)
    values: Values = {name: [] for name in ("subject", *chosen)}
    for subject, person, absence in people:
        values["subject"].append(subject)
        for name in chosen:
            values[name].append(_cell(person, absence, name))
    return values


def _cell(person: Participant, absence: str, column: str) -> Any:
    if column == "labelled":
        return person.diagnosis is not None
    value = absence if column == "series" else getattr(person, column)
    return None if isinstance(value, float) and math.isnan(value) else value


# Tables with columns and codes of brainfed's own: of simulated cohorts, and of graphs, a row each.

SITE = "data set"
COLUMNS = ColumnSettings(subject="subject", site=SITE, age="age", sex="sex", diagnosis="class")
"""Columns of these rows."""
DIGITS = 5
"""Least number of digits of a graph's number in its id."""
SUFFIX = "_graph_labels.txt"


def as_written(settings: CohortSettings) -> CohortSettings:
    """The settings with the columns and codes of the table: a simulated one and that of graphs have their own."""
    if settings.source == "simulate":
        return replace(settings, columns=ColumnSettings(mean_fd="mean_fd"), codes=CodeSettings(), missing=(), rows={})
    if settings.source == "tudataset":
        own_names = {name: name for name in settings.classes}
        return replace(settings, columns=COLUMNS, codes=CodeSettings(diagnosis=own_names))
    return settings


def graph_rows(tables: Sequence[str | Path], classes: Sequence[str]) -> list[Row]:
    """A row a graph of the files `NAME_graph_labels.txt`, in ascending order of id.

    The label values of a data set mean the classes in ascending order: -1 and 1 the first two.

    Raises:
        UserError: a label is no integer, or a data set has no graph, one class, or more classes than there are names,
            or a name stands for no graph.
    """
    rows = [row for table in tables for row in _rows(Path(table), classes)]
    present = {row.cells[str(COLUMNS.diagnosis)] for row in rows}
    if idle := [name for name in classes if name not in present]:
        raise UserError(
            f"{tables[0]}: expected a graph of every class in `classes`, found none of {idle[0]!r}: no data set has so "
            f"many different labels; remove {'it' if len(idle) == 1 else 'the last ' + str(len(idle))}."
        )
    return sorted(rows, key=lambda row: row.subject)


def _rows(path: Path, classes: Sequence[str]) -> list[Row]:
    name = path.name.removesuffix(SUFFIX)
    lines = _text(path).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    labels = [_label(path, number, line) for number, line in enumerate(lines, start=1)]
    values = sorted(set(labels))
    if len(values) < 2:
        raise UserError(
            f"{path}: expected graphs of two classes or more, found {len(values) or 'no graph'}"
            f"{' class' if values else ''}; remove the data set from `tudataset.names`, or fetch it again."
        )
    if len(values) > len(classes):
        shown = ", ".join(map(str, values[:8]))
        raise UserError(
            f"{path}: expected at most {len(classes)} different labels, as many as `classes` has names, found "
            f"{len(values)} ({shown}); name every class."
        )
    meaning = dict(zip(values, classes, strict=False))
    width = max(DIGITS, len(str(len(labels))))
    cells = {SITE: name, str(COLUMNS.age): None, str(COLUMNS.sex): None}
    return [
        Row(number, f"{name}-{number:0{width}d}", cells | {str(COLUMNS.diagnosis): meaning[label]}, str(path))
        for number, label in enumerate(labels, start=1)
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{path}: expected a text file with a label a line, found one that cannot be read ({error}); fetch the "
            "data set again."
        ) from error


def _label(path: Path, number: int, line: str) -> int:
    try:
        return int(line)
    except ValueError:
        raise UserError(
            f"{path}, line {number}: expected the label of a graph, an integer, found {line[:40]!r}; fetch the data "
            "set again."
        ) from None
