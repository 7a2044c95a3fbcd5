"""Read artefacts in the order of a list of subjects: arrays, graphs, people, public subjects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.graphs import Graph
from brainfed.runtime import (
    ArrayFile,
    BoolArray,
    Float32,
    Float64,
    IntArray,
    UserError,
    map_array,
    read_arrays,
    read_table,
)

# Rows of subjects that differ in their number of rows, stored one subject after the other.


def rows_of(start: IntArray, subjects: IntArray) -> tuple[IntArray, IntArray]:
    """Starts (m + 1,) of the subjects' rows laid end to end, and the positions that these rows had.

    Args:
        start: (n + 1,) subject i has the rows `start[i]` to `start[i + 1]`, without the last.
        subjects: (m,) positions of subjects.
    """
    counts = np.diff(start)[subjects]
    chosen = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return chosen, np.repeat(start[:-1][subjects] - chosen[:-1], counts) + np.arange(chosen[-1])


def chosen_rows(start: IntArray, subjects: IntArray) -> tuple[IntArray, IntArray | slice]:
    """The same; the positions are a slice where the subjects are neighbours, so that their rows are not copied."""
    if len(subjects) and np.array_equal(subjects, np.arange(subjects[0], subjects[0] + len(subjects))):
        first, last = start[subjects[0]], start[subjects[-1] + 1]
        return start[subjects[0] : subjects[-1] + 2] - first, slice(int(first), int(last))
    return rows_of(start, subjects)


CHECKED_ROWS = 1024


def align(file: ArrayFile, name: str, subjects: Sequence[str], path: Path | str) -> NDArray[np.generic]:
    """Rows of an array in the order of `subjects`; the array itself where it has that order.

    Raises:
        UserError: a subject is missing, or a value is not finite.
    """
    place = {subject: row for row, subject in enumerate(file.subjects)}
    absent = [subject for subject in subjects if subject not in place]
    if absent:
        raise UserError(f"{path}: {_absence(file, absent, len(subjects))}")
    rows = file.arrays[name]
    if tuple(subjects) != file.subjects:
        rows = rows[[place[subject] for subject in subjects]]
    for start in range(0, len(rows), CHECKED_ROWS):
        finite = np.isfinite(rows[start : start + CHECKED_ROWS])
        if not finite.all():
            subject = subjects[start + int(np.argmin(finite.all(axis=1)))]
            raise UserError(f"{path}: the values of subject {subject!r} are not finite; delete the file and run again.")
    return rows


def _absence(file: ArrayFile, absent: Sequence[str], subjects: int) -> str:
    """Sentence on subjects of the split that a file lacks; a cohort of scans may hold some without measures."""
    first = next(iter(file.metadata.get("views", [])), file.metadata)
    if first.get("settings", {}).get("kind") == "morphometry":
        return (
            f"expected FreeSurfer measures of every subject, found none of {absent[0]!r} ({len(absent)} of {subjects} "
            "subjects); take them out of the phenotype table, or put a view of connectivity first under "
            "`features.views` (with `weight: 0` it has no effect), as a subject may lack all views but the first."
        )
    return f"subject {absent[0]!r} is missing; delete the file and run again."


def read_features(path: Path | str, subjects: Sequence[str]) -> Float32:
    """Features (n, d) in the order of `subjects`; memory-mapped if they are all of the file; errors as in `align`."""
    rows = align(map_array(path, "features"), "features", subjects, path)
    return np.asarray(rows, dtype=np.float32)


def read_graph(path: Path | str, subjects: Sequence[str]) -> Graph:
    """The graph with its nodes in the order of `subjects` and its edges in order of (row, column).

    Raises:
        UserError: its subjects are not those of the split.
    """
    file = read_arrays(path, ["row", "column", "weight"])
    place = {subject: position for position, subject in enumerate(subjects)}
    if sorted(file.subjects) != sorted(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    position = np.array([place[subject] for subject in file.subjects], dtype=np.int64)
    row, column = position[file.arrays["row"]], position[file.arrays["column"]]
    order = np.lexsort((column, row))
    return Graph(row[order], column[order], file.arrays["weight"][order], len(subjects))


# Phenotypes of the subjects of a split, joined by id.

SEX_CODES = {"female": 0, "male": 1}

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
    age: Float64 | None = None
    mean_fd: Float64 | None = None

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
        known = {name: getattr(self, name) for name in UNKNOWN if getattr(self, name) is not None}
        return Phenotypes(
            **{name: np.concatenate([values, np.full(more, UNKNOWN[name][0])]) for name, values in known.items()}
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


def read_public(path: Path | str, subjects: Sequence[str], training: BoolArray) -> BoolArray:
    """(F, n) whether each of `subjects` is public in each fold.

    Args:
        path: subject, fold.
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
