"""Diagnoses for a stage that is fitted on labels, without those of the subjects tested in its fold."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError


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
        absent = [subject for subject in subjects if subject not in known.index]
        if absent:
            raise UserError(f"{path}: subject {absent[0]!r} is missing; delete the file and run again.")
    trained = [subject for subject in subjects if not tested[subject]]
    visible = diagnosis.loc[trained].dropna().to_dict()
    return np.array([visible.get(subject, -1) for subject in subjects], dtype=np.int64)
