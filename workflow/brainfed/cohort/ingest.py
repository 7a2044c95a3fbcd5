"""From a phenotype table to the participants of a cohort."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from brainfed.cohort.participant import read_participant
from brainfed.cohort.phenotype_table import read_phenotype_table
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings


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
        participant = read_participant(str(table), row, columns, codes)
        absence = absences.get(row.subject, "")
        records.append({"subject": row.subject, **asdict(participant), "has_series": not absence, "absence": absence})
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
