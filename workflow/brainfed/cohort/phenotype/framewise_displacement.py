"""Mean framewise displacement of a subject, from fMRIPrep's tables of confounds."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path

from brainfed.cohort.phenotype.plain_number import plain_number
from brainfed.cohort.phenotype.table import ALWAYS_MISSING
from brainfed.runtime.errors import UserError

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
    """Displacements of one table in any encoding: header and numbers are ASCII.

    Raises:
        UserError: a displacement is not a number of millimetres, or the table cannot be read.
    """
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
