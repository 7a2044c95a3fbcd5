"""From a phenotype table to the participants of a cohort."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from brainfed.cohort.phenotype._participant import (
    ALL,
    FIELDS,
    Participant,
    Values,
    as_written,
    displacement_problem,
    graph_rows,
    mean_displacement,
    read_participant,
    values_of,
)
from brainfed.cohort.phenotype._table import cohort_rows
from brainfed.cohort.settings import CohortSettings

DTYPES: Mapping[str, Any] = {
    "age": "float64",
    "sex": "string",
    "diagnosis": "Int8",
    "labelled": "bool",
    "mean_fd": "float64",
    "has_series": "bool",
}
"""Of the fields that are no plain text."""


def ingest(
    table: str | Path | Sequence[str | Path],
    settings: CohortSettings,
    absences: Mapping[str, str],
    confounds: Mapping[str, Sequence[str | Path]] | None = None,
) -> pd.DataFrame:
    """The participants of a cohort, in ascending order of id.

    Args:
        table: path of the phenotype table, or of several that are read one below the other.
        settings: of the cohort.
        absences: subject id -> cause, for subjects without a usable series.
        confounds: subject id -> fMRIPrep's tables of its runs; they give the motion that the phenotype table lacks.

    Returns:
        Columns subject, site (str), age (float, years), sex (`male`, `female`, missing), diagnosis (Int8:
        1 patient, 0 control, missing), mean_fd (float, mm), fd_source (`table`, `scan`: tables of confounds, or
        empty), fd_problem (str: why those tables give no mean, else empty), has_series (bool) and absence (str: why
        no series is usable, else empty). Under the target sex `diagnosis` is 1 for male and 0 for female, and `sex` is
        missing throughout, so that no method reads its target.

    Raises:
        UserError: the table is broken, a code is unknown, or a number is malformed or out of range.
    """
    return participants_table(values_of(people_of_table(table, settings, absences), ALL), confounds)


def people_of_table(
    table: str | Path | Sequence[str | Path], settings: CohortSettings, absences: Mapping[str, str]
) -> Iterator[tuple[str, Participant, str]]:
    """Subject, phenotype, and reason for the absence of a series (or empty) of every row; arguments as of `ingest`."""
    own, tables = as_written(settings), [table] if isinstance(table, str | Path) else table
    rows = graph_rows(tables, own.classes) if own.source == "tudataset" else cohort_rows(tables, own)
    for row in rows:
        yield row.subject, read_participant(row, own), absences.get(row.subject, "")


def participants_table(values: Values, confounds: Mapping[str, Sequence[str | Path]] | None = None) -> pd.DataFrame:
    """The participants with some of their columns, as `ingest` returns them; `labelled` (bool) is another.

    `confounds` are read, as by `ingest`, if the values (of `values_of`) have a column mean_fd.
    """
    table = dict(values)
    if "mean_fd" in table:
        read = zip(table["subject"], table["mean_fd"], strict=True)
        motion = [_motion(subject, value, (confounds or {}).get(subject, ())) for subject, value in read]
        table |= dict(zip(FIELDS["mean_fd"], map(list, zip(*motion, strict=True)), strict=True))
    if "series" in table:
        table["absence"] = table.pop("series")
        table["has_series"] = [not absence for absence in table["absence"]]
    fields = ["subject", *(field for name in FIELDS if name in values for field in FIELDS[name])]
    return pd.DataFrame({name: pd.Series(table[name], dtype=DTYPES.get(name, "str")) for name in fields})


def _motion(subject: str, known: float | None, files: Sequence[str | Path]) -> tuple[float, str, str]:
    """Mean framewise displacement, its source, and why the tables of confounds give none."""
    if known is not None:
        return known, "table", ""
    measured = mean_displacement(files)
    return measured, "" if math.isnan(measured) else "scan", displacement_problem(subject, files)
