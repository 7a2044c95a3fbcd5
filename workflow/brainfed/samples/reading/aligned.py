"""Arrays and graphs of an artefact in the order of a list of subjects."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph
from brainfed.runtime.artefacts import ArrayFile, read_arrays
from brainfed.runtime.errors import UserError
from brainfed.runtime.mapped import map_array

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
    held = file.arrays[name]
    rows = held if tuple(subjects) == file.subjects else held[[place[subject] for subject in subjects]]
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


def read_features(path: Path | str, subjects: Sequence[str]) -> NDArray[np.float32]:
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
