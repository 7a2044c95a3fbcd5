"""Phenotypes of the subjects of a split, joined by id."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError

SEX_CODES = {"female": 0, "male": 1}

IntArray = NDArray[np.int64]


UNKNOWN: Mapping[str, tuple[float, type[np.generic]]] = {
    "site": (-1, np.int64),
    "sex": (-1, np.int64),
    "age": (np.nan, np.float64),
    "mean_fd": (np.nan, np.float64),
}
"""Column -> what stands for an unknown value, and the type of numbers."""


@dataclass(frozen=True)
class Phenotypes:
    """Non-imaging columns, (n,) each; NaN or -1 where unknown. None: the job did not declare the column.

    A method reads them by `of`, which refuses a column that is not among `Method.phenotypes`: a change of a cell runs
    again the jobs that declare its column, and no other.
    """

    site: IntArray | None = None
    sex: IntArray | None = None
    age: NDArray[np.float64] | None = None
    mean_fd: NDArray[np.float64] | None = None

    def of(self, name: str) -> NDArray[Any]:
        """The values of a column.

        Raises:
            ValueError: the job did not declare it.
        """
        values: NDArray[Any] | None = getattr(self, name)
        if values is None:
            raise ValueError(f"column {name!r} of the phenotype table is not declared; add it to `Method.phenotypes`")
        return values

    def or_unknown(self, name: str, count: int) -> NDArray[Any]:
        """The values of a column; unknown for all (n,) subjects if the job did not declare it."""
        values: NDArray[Any] | None = getattr(self, name)
        unknown, number = UNKNOWN[name]
        return np.full(count, unknown, dtype=number) if values is None else values

    def with_unknown(self, more: int) -> "Phenotypes":
        """The same columns with as many further rows, all unknown."""
        held = {name: (getattr(self, name), unknown) for name, (unknown, _) in UNKNOWN.items()}
        return Phenotypes(
            **{
                name: np.concatenate([values, np.full(more, unknown)])
                for name, (values, unknown) in held.items()
                if values is not None
            }
        )


def read_people(split: Path | str, participants: Path | str | None) -> pd.DataFrame:
    """The split's subjects with the columns of the participants, in ascending order of id.

    Args:
        split: subject, institution, fold.
        participants: subject and the columns that the job declares; none without any.

    Returns:
        subject, institution, fold, and these columns.

    Raises:
        UserError: a subject of the split is not among the participants.
    """
    drawn = read_table(split, ["subject", "institution", "fold"])
    if not participants:
        return drawn.sort_values("subject", ignore_index=True)
    known = read_table(participants, ["subject"])
    people = drawn.merge(known, on="subject", how="left", validate="one_to_one", indicator=True)
    strangers = people.loc[people["_merge"] != "both", "subject"]
    if len(strangers):
        raise UserError(
            f"{split}: subject {strangers.iloc[0]!r} is not in {participants}; delete the split and run again."
        )
    return people.drop(columns="_merge").sort_values("subject", ignore_index=True)


def phenotypes_of(people: pd.DataFrame) -> Phenotypes:
    """Codes and numbers of the non-imaging columns that are there; -1 or NaN where unknown."""
    known: dict[str, NDArray[Any]] = {
        name: people[name].to_numpy(np.float64) for name in ("age", "mean_fd") if name in people
    }
    if "site" in people:
        codes = {site: code for code, site in enumerate(sorted(people["site"].unique()))}
        known["site"] = people["site"].map(codes).to_numpy(np.int64)
    if "sex" in people:
        known["sex"] = np.asarray(people["sex"].map(SEX_CODES).fillna(-1), dtype=np.int64)
    return Phenotypes(**known)
