"""Read the names and labels of a parcellation's regions."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.errors import UserError


def read_region_table(table: str | Path) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Labels and names of a tab-separated region table with the columns index and name.

    Raises:
        UserError: the file is not a text table, a column is absent, it has no row, an index is not a positive integer,
            a name is empty, or an index or name appears twice.
    """
    try:
        frame = pd.read_csv(table, sep="\t", dtype=str, encoding="utf-8-sig", keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"{table}: expected a tab-separated text table with the columns index and name, found an unreadable one "
            f"({' '.join(str(error).split())}); save it as UTF-8 text."
        ) from error
    absent = [column for column in ("index", "name") if column not in frame.columns]
    if absent:
        raise UserError(
            f"{table}: expected the tab-separated columns index and name, found {', '.join(frame.columns)}; "
            f"add {' and '.join(absent)}."
        )
    if frame.empty:
        raise UserError(f"{table}: expected one row a region, found the header alone; is it the whole table?")
    frame = frame.assign(**{column: frame[column].str.strip() for column in ("index", "name")})
    for line, (index, name) in enumerate(zip(frame["index"], frame["name"], strict=True), start=2):
        if not name:
            raise UserError(f"{table}, line {line}: expected a name for region {index!r}, found none; give it one.")
        if not re.fullmatch(r"0*[1-9][0-9]{0,8}", index):
            raise UserError(f"{table}, line {line}: expected a positive whole number as index, found {index!r}.")
    frame["index"] = frame["index"].astype("int64")
    for column in ("index", "name"):
        twice = frame.loc[frame[column].duplicated(), column]
        if len(twice):
            raise UserError(f"{table}: expected every {column} once, found {str(twice.iloc[0])!r} again; rename one.")
    return np.asarray(frame["index"], dtype=np.int64), tuple(frame["name"])
