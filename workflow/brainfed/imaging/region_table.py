"""The names of a parcellation's regions and the labels that stand for them."""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError


def read_region_table(table: str | Path) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels and names of a tab-separated region table with the columns index and name.

    Raises:
        UserError: the file is no text table, a column is absent, an index is no positive whole number, or one appears
            twice.
    """
    try:
        frame = pd.read_csv(table, sep="\t", dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{table}: expected a tab-separated text table with the columns index and name, found none that reads "
            f"({' '.join(str(error).split())}); save it as UTF-8 text."
        ) from error
    absent = [column for column in ("index", "name") if column not in frame.columns]
    if absent:
        raise UserError(
            f"{table}: expected the tab-separated columns index and name, found {', '.join(frame.columns)}; "
            f"add {' and '.join(absent)}."
        )
    for line, index in enumerate(frame["index"], start=2):
        if not index.strip().isdigit() or int(index) == 0:
            raise UserError(f"{table}, line {line}: expected a positive whole number as index, found {index!r}.")
    for column in ("index", "name"):
        twice = frame.loc[frame[column].duplicated(), column]
        if len(twice):
            raise UserError(f"{table}: expected every {column} once, found {twice.iloc[0]!r} again; rename one.")
    return np.asarray(frame["index"], dtype=np.int64), tuple(frame["name"])
