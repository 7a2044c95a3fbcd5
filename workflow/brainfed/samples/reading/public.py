"""Public subjects of every fold, joined by id."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError


def read_public(path: Path | str, subjects: Sequence[str], training: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(F, n) whether each of `subjects` is public in each fold.

    Args:
        path: subject, fold.
        subjects: n ids of the labelled subjects.
        training: (F, n) whether each trains in each fold.

    Raises:
        UserError: the table has another fold, an unknown subject, a row twice, no row of a fold, or a subject in a fold
            in which it does not train.
    """
    table = read_table(path, ["subject", "fold"])
    problem = _damage(table, set(subjects), len(training))
    if problem:
        raise UserError(f"{path}: {problem}; delete it and run again.")
    place = {subject: position for position, subject in enumerate(subjects)}
    public = np.zeros(training.shape, dtype=bool)
    public[table["fold"].to_numpy(np.int64), table["subject"].map(place).to_numpy(np.int64)] = True
    leaked = np.argwhere(public & ~training)
    if len(leaked):
        fold, position = leaked[0].tolist()
        raise UserError(
            f"{path}: expected training subjects alone, found {subjects[position]!r}, which fold {fold} tests; delete "
            "it and run again."
        )
    return public


def _damage(table: pd.DataFrame, subjects: set[str], folds: int) -> str:
    """What does not fit in the table; empty if all does."""
    if not pd.api.types.is_integer_dtype(table["fold"]):
        return f"expected folds as whole numbers, found {table['fold'].dtype}"
    outside = table.loc[~table["fold"].isin(range(folds)), "fold"]
    if len(outside):
        return f"expected folds 0 to {folds - 1}, found {outside.iloc[0]}"
    strangers = table.loc[~table["subject"].isin(subjects), "subject"]
    if len(strangers):
        return f"expected labelled subjects of the split, found {strangers.iloc[0]!r}"
    twice = table.loc[table.duplicated(["subject", "fold"]), "subject"]
    if len(twice):
        return f"expected one row a subject and fold, found {twice.iloc[0]!r} twice"
    empty = sorted(set(range(folds)) - set(table["fold"]))
    return f"expected public subjects in every fold, found none in fold {empty[0]}" if empty else ""
