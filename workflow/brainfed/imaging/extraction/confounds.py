"""Read a table of confounds of fMRIPrep."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError


def read_confounds(subject: str, file: str | Path, columns: Sequence[str], volumes: int) -> NDArray[np.float64]:
    """(volumes, confounds) values of a tab or comma separated table.

    The first row of temporal derivatives is n/a in fMRIPrep's tables; the second row's value replaces it.

    Args:
        subject: id, for messages.
        file: path of the table.
        columns: columns to read; empty: all.
        volumes: number of volumes of the scan, and of expected rows.

    Raises:
        UserError: a column is absent or not numeric, a value is missing beyond the first row, or the
            number of rows is not the scan's number of volumes.
    """
    where = f"Subject {subject}, {file}"
    try:
        table = pd.read_csv(file, sep="," if str(file).endswith(".csv") else "\t", na_values=["n/a"])
    except (OSError, ValueError) as error:
        raise UserError(f"{where}: expected a table of confounds, found an unreadable one ({error}).") from error
    absent = [column for column in columns if column not in table.columns]
    if absent:
        raise UserError(f"{where}: expected the confounds {', '.join(columns)}, found no {', '.join(absent)}.")
    chosen = table[list(columns)] if columns else table
    if len(chosen) != volumes:
        raise UserError(f"{where}: expected {volumes} rows, one a volume, found {len(chosen)}.")
    for column in chosen.columns:
        if not pd.api.types.is_numeric_dtype(chosen[column]):
            raise UserError(f"{where}: expected numbers in column {column!r}, found text; leave it out.")
    values = chosen.to_numpy(dtype=np.float64, copy=True)
    if volumes > 1:
        values[0] = np.where(np.isnan(values[0]), values[1], values[0])
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        row, at = bad[0]
        raise UserError(
            f"{where}, line {row + 2}: expected a finite value in column {chosen.columns[at]!r}, found a missing one; "
            "leave the column out or repair it."
        )
    return values
