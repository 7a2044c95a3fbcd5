"""From a phenotype table to the participants of a cohort."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from brainfed.cohort.phenotype.framewise_displacement import displacement_problem, mean_displacement
from brainfed.cohort.phenotype.graph_labels import COLUMNS, class_codes, graph_rows
from brainfed.cohort.phenotype.participant import read_participant
from brainfed.cohort.phenotype.table import read_phenotype_table
from brainfed.cohort.settings.cohort import CodeSettings, CohortSettings, ColumnSettings


def ingest(
    table: str | Path | Sequence[str | Path],
    settings: CohortSettings,
    absences: Mapping[str, str],
    confounds: Mapping[str, Sequence[str | Path]] | None = None,
) -> pd.DataFrame:
    """The participants of a cohort, in ascending order of id.

    A simulated cohort's table has brainfed's own columns and codes, whatever `columns` and `codes` say.

    Args:
        table: path of the phenotype table, or of several that are read one below the other.
        settings: the cohort's settings.
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
    columns, codes, missing, wanted = settings.columns, settings.codes, settings.missing, settings.rows
    if settings.source == "simulate":
        columns, codes, missing, wanted = ColumnSettings(mean_fd="mean_fd"), CodeSettings(), (), {}
    elif settings.source == "tudataset":
        columns, codes = COLUMNS, class_codes(settings.classes)
    rows = (
        graph_rows([table] if isinstance(table, str | Path) else table, settings.classes)
        if settings.source == "tudataset"
        else read_phenotype_table(table, columns, missing, wanted=wanted)
    )
    records = []
    for row in rows:
        participant = asdict(read_participant(row.table, row, columns, codes, settings.target, settings.classes))
        del participant["excluded"]
        participant["fd_source"] = "" if math.isnan(participant["mean_fd"]) else "table"
        participant["fd_problem"] = ""
        if not participant["fd_source"]:
            files = (confounds or {}).get(row.subject, ())
            participant["mean_fd"] = mean_displacement(files)
            participant["fd_problem"] = displacement_problem(row.subject, files)
            participant["fd_source"] = "" if math.isnan(participant["mean_fd"]) else "scan"
        absence = absences.get(row.subject, "")
        records.append({"subject": row.subject, **participant, "has_series": not absence, "absence": absence})
    return pd.DataFrame(records).astype(
        {
            "subject": "str",
            "site": "str",
            "age": "float64",
            "sex": "string",
            "diagnosis": "Int8",
            "mean_fd": "float64",
            "fd_source": "str",
            "fd_problem": "str",
            "absence": "str",
        }
    )
