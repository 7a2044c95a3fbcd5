"""Rows of subjects that differ in their number of rows, stored one subject after the other."""

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def chosen_rows(start: IntArray, subjects: IntArray) -> tuple[IntArray, IntArray | slice]:
    """Starts (m + 1,) of the chosen subjects' rows, and the positions of these rows: a slice where they are neighbours.

    Args:
        start: (n + 1,) subject i has the rows `start[i]` to `start[i + 1]`, without the last.
        subjects: (m,) positions of subjects.
    """
    counts = np.diff(start)[subjects]
    chosen = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if len(subjects) and np.array_equal(subjects, np.arange(subjects[0], subjects[0] + len(subjects))):
        first = int(start[subjects[0]])
        return chosen, slice(first, first + int(chosen[-1]))
    shift = np.repeat(start[:-1][subjects] - chosen[:-1], counts)
    return chosen, np.arange(chosen[-1]) + shift
