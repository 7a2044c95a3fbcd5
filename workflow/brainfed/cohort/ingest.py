"""From a phenotype table to the participants of a cohort: codes mapped, missing codes missing, numbers checked."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from brainfed.cohort.phenotype_table import Row, read_phenotype_table
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.runtime.errors import UserError

OLDEST = 120.0
LARGEST_MEAN_FD = 100.0


def ingest(table: str | Path, settings: CohortSettings, absences: Mapping[str, str]) -> pd.DataFrame:
    """The participants of a cohort, in ascending order of id.

    A simulated cohort's table has brainfed's own columns and codes, whatever `columns` and `codes` say.

    Args:
        table: path of the phenotype table.
        settings: the cohort's settings.
        absences: subject id -> why it has no series to use, for those that have none.

    Returns:
        Columns subject, site (str), age (float, years), sex (`male`, `female`, missing), diagnosis (Int8:
        1 patient, 0 control, missing), mean_fd (float, mm), has_series (bool) and absence (str: why there
        is no series, else empty).

    Raises:
        UserError: the table is broken, a code is unknown, or a number is none or out of range.
    """
    columns, codes, missing = settings.columns, settings.codes, settings.missing
    if settings.source == "simulate":
        columns, codes, missing = ColumnSettings(mean_fd="mean_fd"), CodeSettings(), ()
    rows = read_phenotype_table(table, columns, missing)
    records = []
    for row in rows:
        where = f"{table}, line {row.line}, subject {row.subject}"
        diagnosis = _meaning(where, row, columns.diagnosis, "diagnosis", codes.diagnosis)
        records.append(
            {
                "subject": row.subject,
                "site": _site(where, row, columns.site),
                "age": _number(where, row, columns.age, "age in years", OLDEST),
                "sex": _meaning(where, row, columns.sex, "sex", codes.sex),
                "diagnosis": None if diagnosis is None else int(diagnosis == "patient"),
                "mean_fd": _number(where, row, columns.mean_fd, "mean framewise displacement in mm", LARGEST_MEAN_FD),
                "has_series": row.subject not in absences,
                "absence": absences.get(row.subject, ""),
            }
        )
    return pd.DataFrame(records).astype(
        {
            "subject": "str",
            "site": "str",
            "age": "float64",
            "sex": "string",
            "diagnosis": "Int8",
            "mean_fd": "float64",
            "absence": "str",
        }
    )


def _site(where: str, row: Row, column: str) -> str:
    site = row.cells[column]
    if site is None:
        raise UserError(f"{where}: expected a site in column {column!r}, found none; fill it in.")
    return site


def _meaning(where: str, row: Row, column: str, what: str, codes: Mapping[str, str]) -> str | None:
    code = row.cells[column]
    if code is None:
        return None
    if code not in codes:
        allowed = ", ".join(f"{known!r} ({meaning})" for known, meaning in codes.items())
        raise UserError(
            f"{where}: expected a {what} code in column {column!r} among {allowed}, found {code!r}; add it under "
            f"codes.{what}, or under `missing`."
        )
    return codes[code]


def _number(where: str, row: Row, column: str | None, what: str, largest: float) -> float:
    text = None if column is None else row.cells[column]
    if text is None:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        remedy = (
            "it has a decimal comma, write a point" if _is_decimal_comma(text) else "mend it or list it in `missing`"
        )
        raise UserError(
            f"{where}: expected the {what} as a number in column {column!r}, found {text!r}; {remedy}."
        ) from None
    if not 0 <= value <= largest:
        raise UserError(
            f"{where}: expected the {what} between 0 and {largest:g} in column {column!r}, found {text!r}; mend it, or "
            "list it in `missing` if it is a missing code."
        )
    return value


def _is_decimal_comma(text: str) -> bool:
    whole, comma, fraction = text.partition(",")
    return bool(comma) and whole.lstrip("-").isdigit() and fraction.isdigit()
