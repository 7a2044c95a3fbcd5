"""How much somebody moved: the mean framewise displacement of fMRIPrep's tables of confounds."""

import csv
import math
from collections.abc import Iterable
from pathlib import Path

from brainfed.cohort.phenotype_table import ALWAYS_MISSING
from brainfed.runtime.errors import UserError

COLUMN = "framewise_displacement"


def mean_displacement(files: Iterable[str | Path]) -> float:
    """Mean over the acquired volumes of all files in mm, scrubbed ones included; NaN where none is known.

    The first volume of a run has no displacement (n/a).

    Raises:
        UserError: a displacement is no number.
    """
    values = [value for file in files for value in _displacements(file)]
    return math.fsum(values) / len(values) if values else math.nan


def _displacements(file: str | Path) -> list[float]:
    with Path(file).open(encoding="utf-8-sig", newline="") as table:
        cells = [(row.get(COLUMN) or "").strip() for row in csv.DictReader(table, delimiter="\t")]
    try:
        return [float(cell) for cell in cells if cell not in ALWAYS_MISSING]
    except ValueError as error:
        raise UserError(
            f"{file}: expected numbers in column {COLUMN!r}, found text ({error}); run fMRIPrep again or repair it."
        ) from error
