"""Read the region series of a cohort from its parts."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.errors import UserError

Series = NDArray[np.float32]


def load_series(files: Sequence[str | Path], subjects: Sequence[str]) -> tuple[dict[str, Series], tuple[str, ...]]:
    """Read the (time, R) series of `subjects` from several parts, and the region names that all parts share.

    Raises:
        UserError: a subject is in no part, or two parts name their regions differently.
    """
    wanted, series = set(subjects), dict[str, Series]()
    parts: list[tuple[str | Path, tuple[str, ...], bool]] = []
    for path in files:
        part = read_arrays(path)
        parts.append((path, tuple(part.metadata["regions"]), bool(part.arrays)))
        series.update({subject: array for subject, array in part.arrays.items() if subject in wanted})
    regions = shared_regions(parts)
    absent = [subject for subject in subjects if subject not in series]
    if absent:
        raise UserError(
            f"Subject {absent[0]}: expected its series in one of {len(files)} parts, found none "
            f"({len(absent)} such subjects); delete the time series and run again."
        )
    return {subject: series[subject] for subject in sorted(series)}, regions


def shared_regions(parts: Iterable[tuple[str | Path, tuple[str, ...], bool]]) -> tuple[str, ...]:
    """Region names of all parts (path, names, whether it holds a series); parts without a series do not count.

    Raises:
        UserError: two parts name their regions differently.
    """
    everything = list(parts)
    used = [(path, names) for path, names, holds in everything if holds]
    for path, names in used:
        if names != used[0][1]:
            raise UserError(
                f"{path}: expected the {len(used[0][1])} regions of {used[0][0]}, found other names or another order; "
                "bring the source files into one order."
            )
    return next((names for _, names in used or [part[:2] for part in everything]), ())


def load_runs(files: Sequence[str | Path]) -> dict[str, tuple[int, ...]]:
    """Subject -> lengths of its runs in the order of its series, for subjects with several runs."""
    held = (read_arrays(path, []).metadata.get("runs", {}) for path in files)
    return {subject: tuple(lengths) for runs in held for subject, lengths in runs.items()}
