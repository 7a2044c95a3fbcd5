"""Phenotypes of the subjects of a split, joined by id."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError

SEX_CODES = {"female": 0, "male": 1}

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Phenotypes:
    """Non-imaging columns, (n,) each; NaN or -1 where unknown."""

    site: IntArray
    sex: IntArray
    age: NDArray[np.float64]
    mean_fd: NDArray[np.float64]


def read_people(split: Path | str, participants: Path | str) -> pd.DataFrame:
    """The split's subjects with their phenotype, in ascending order of id.

    Returns:
        subject, institution, fold, site, age, sex, diagnosis, mean_fd.

    Raises:
        UserError: a subject of the split is not among the participants.
    """
    drawn = read_table(split, ["subject", "institution", "fold"])
    known = read_table(participants, ["subject", "site", "age", "sex", "diagnosis", "mean_fd"])
    people = drawn.merge(known, on="subject", how="left", validate="one_to_one", indicator=True)
    strangers = people.loc[people["_merge"] != "both", "subject"]
    if len(strangers):
        raise UserError(
            f"{split}: subject {strangers.iloc[0]!r} is not in {participants}; delete the split and run again."
        )
    return people.drop(columns="_merge").sort_values("subject", ignore_index=True)


def phenotypes_of(people: pd.DataFrame) -> Phenotypes:
    """Codes and numbers of the non-imaging columns; -1 or NaN where unknown."""
    sites = sorted(people["site"].unique())
    return Phenotypes(
        site=people["site"].map({site: code for code, site in enumerate(sites)}).to_numpy(np.int64),
        sex=np.asarray(people["sex"].map(SEX_CODES).fillna(-1), dtype=np.int64),
        age=people["age"].to_numpy(np.float64),
        mean_fd=people["mean_fd"].to_numpy(np.float64),
    )
