"""Labels and covariates for stages that are fitted on training subjects, without those of tested subjects."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import PLURALS, Target
from brainfed.runtime import UserError, read_table


def require_agreement(people: Iterable[tuple[str, str, Any]], target: Target) -> None:
    """Refuse copies that would train and be tested under two labels.

    `people` are of every included subject its id, the same name for all copies of one scan, and its label (None or NaN
    where unknown).

    Raises:
        UserError: two copies have different labels.
    """
    copies: dict[str, dict[str, int]] = {}
    for subject, scan, label in people:
        if label is not None and label == label:
            copies.setdefault(scan, {})[subject] = int(label)
    wrong = [labels for labels in copies.values() if len(set(labels.values())) > 1]
    if wrong:
        more = f" (and {len(wrong) - 1} more such groups)" if len(wrong) > 1 else ""
        raise UserError(
            f"Subjects {', '.join(wrong[0])}{more}: expected one {target} of one scan, found the same or nearly the "
            f"same data with different {PLURALS[target]}; correct the table or the file that was copied, remove the "
            "wrong rows, or set `contradictory_copies: keep` to train on all of them."
        )


def training_labels(
    split: Path | str, participants: Path | str, subjects: Sequence[str], fold: int
) -> NDArray[np.int64]:
    """(n,) diagnosis in {0, ..., C - 1} of `subjects`, -1 where tested in `fold` or unlabelled.

    Raises:
        UserError: a subject has no row in a table.
        ValueError: no subject is tested in `fold`, so no label would be hidden.
    """
    drawn = read_table(split, ["subject", "fold"]).set_index("subject")["fold"]
    if fold < 0 or not (drawn == fold).any():
        raise ValueError(f"no subject is tested in fold {fold}: its labels cannot be hidden")
    tested = drawn == fold
    diagnosis = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"]
    for path, known in ((split, tested), (participants, diagnosis)):
        _require(subjects, known.index, path)
    trained = [subject for subject in subjects if not tested[subject]]
    visible = diagnosis.loc[trained].dropna().to_dict()
    return np.array([visible.get(subject, -1) for subject in subjects], dtype=np.int64)


def _require(subjects: Sequence[str], known: pd.Index, path: Path | str) -> None:
    """Refuse a table without a row of each subject."""
    if absent := [subject for subject in subjects if subject not in known]:
        raise UserError(f"{path}: subject {absent[0]!r} is missing; delete the file and run again.")


# Sites of subjects and covariates for harmonisation; no diagnosis is read.

SEXES = {"female": 0.0, "male": 1.0}


@dataclass(frozen=True)
class Acquisition:
    """Sites and covariates of subjects.

    Attributes:
        site: (n,) names.
        covariates: name -> (n,), NaN where unknown; age in years, sex 0 (female) or 1 (male).
    """

    site: NDArray[np.object_]
    covariates: dict[str, NDArray[np.float64]]


def read_acquisition(participants: Path | str, subjects: Sequence[str], covariates: Sequence[str]) -> Acquisition:
    """Sites and `covariates` (`age`, `sex`) of `subjects`, in their order.

    Raises:
        UserError: a subject has no row in the table, or no site.
    """
    known = read_table(participants, ["subject", "site", *covariates]).set_index("subject")
    _require(subjects, known.index, participants)
    people = known.loc[list(subjects), ["site", *covariates]]
    nowhere = people.index[people["site"].isna()]
    if len(nowhere):
        raise UserError(
            f"{participants}: `harmonise: combat` needs the site of every subject, {nowhere[0]} (and "
            f"{len(nowhere) - 1} more) have none; fill in the site, exclude them, or use `harmonise: none`."
        )
    numbers = {name: people[name].map(SEXES) if name == "sex" else people[name] for name in covariates}
    return Acquisition(
        people["site"].to_numpy(dtype=object),
        {name: np.asarray(values.astype("float64"), dtype=np.float64) for name, values in numbers.items()},
    )
