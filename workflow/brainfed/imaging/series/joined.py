"""Standardised region series, alone and of all subjects in one file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.imaging.series.roi_series import empty_regions, varying_regions
from brainfed.imaging.series.shards import load_runs, shared_regions
from brainfed.imaging.settings import SeriesSettings
from brainfed.runtime.arrays import Float32, Float64
from brainfed.runtime.artefacts import array_shapes, map_array, read_arrays, writing_blocks
from brainfed.runtime.errors import UserError

Series = Float32


def standardised(series: Float32) -> Float64:
    """(time, R) series with mean 0 and variance 1; a region without signal is 0 throughout."""
    varying = varying_regions(series)
    values = np.where(varying, series, 0.0).astype(np.float64)
    values -= values.mean(axis=0)
    return np.asarray(values / np.where(varying, values.std(axis=0), 1.0))


LEAST_TIMEPOINTS = 2
"""Time points without which a series has no variance."""


def split_runs(series: Float32, lengths: Sequence[int]) -> list[Float32]:
    """(time, R) series of each run of a subject; one series without lengths."""
    return np.split(series, np.cumsum(lengths)[:-1]) if len(lengths) else [series]


def write_series(
    path: str | Path,
    files: Sequence[str | Path],
    subjects: Sequence[str],
    settings: SeriesSettings,
    metadata: Mapping[str, Any],
) -> None:
    """Write the series of `subjects` in ascending order of id; one of them is in memory at a time.

    The arrays are those of `samples.series.SeriesInputs`.

    Args:
        metadata: to be kept beside the subjects and the names of the regions.

    Raises:
        UserError: a subject is in no part, has fewer than two time points, other regions or a value that is not finite.
    """
    order = sorted(subjects)
    place, regions = _places(files)
    lengths = [_timepoints(subject, place, len(regions)) for subject in order]
    runs = load_runs(files) if settings.scale == "zscore_runs" else {}
    shapes = {"start": (np.int64, (len(order) + 1,)), "series": (np.float32, (sum(lengths), len(regions)))}
    with writing_blocks(path, shapes, {**metadata, "subjects": order, "regions": list(regions)}) as append:
        append("start", np.cumsum([0, *lengths], dtype=np.int64))
        for subject in order:
            series = map_array(place[subject][0], subject).arrays[subject]
            append("series", scaled(subject, series, runs.get(subject, ())))


def scaled(subject: str, series: Series, runs: Sequence[int] = ()) -> Series:
    """(T, R) z-scores of a subject's series, of each run where lengths of runs are given; 0 in a region without signal.

    Raises:
        UserError: a value is not finite, in a region that is not empty throughout.
    """
    wrong = ~np.isfinite(series) & ~empty_regions(series)
    if wrong.any():
        moment, region = np.argwhere(wrong)[0].tolist()
        raise UserError(
            f"Subject {subject}: expected a series of finite values, found {series[moment, region]} at time point "
            f"{moment} of region {region} (counted from 0); mend the file, or leave the subject out of the phenotype "
            "table."
        )
    return np.concatenate([standardised(run) for run in split_runs(series, runs)]).astype(np.float32)


def _places(files: Sequence[str | Path]) -> tuple[dict[str, tuple[str | Path, tuple[int, ...]]], tuple[str, ...]]:
    """Subject -> its part and the shape of its series; and the names of the regions that all parts share."""
    place: dict[str, tuple[str | Path, tuple[int, ...]]] = {}
    parts: list[tuple[str | Path, tuple[str, ...], bool]] = []
    for path in files:
        shapes = array_shapes(path)
        parts.append((path, tuple(read_arrays(path, []).metadata["regions"]), bool(shapes)))
        place |= {subject: (path, shape) for subject, shape in shapes.items()}
    return place, shared_regions(parts)


def _timepoints(subject: str, place: Mapping[str, tuple[str | Path, tuple[int, ...]]], regions: int) -> int:
    """Number of time points of a subject that has a series of these regions."""
    if subject not in place:
        raise UserError(
            f"Subject {subject}: expected its series in a part of the cohort's series, found none; delete the folder "
            "`timeseries` of the cohort and run again."
        )
    path, shape = place[subject]
    if len(shape) != 2 or shape[1] != regions:
        raise UserError(
            f"{path}: expected a series of {regions} regions of subject {subject}, found an array {shape}; delete the "
            "file and run again."
        )
    if shape[0] < LEAST_TIMEPOINTS:
        raise UserError(
            f"Subject {subject}: expected a series of at least {LEAST_TIMEPOINTS} time points, found {shape[0]}; set "
            "min_timepoints and on_invalid: drop of the cohort."
        )
    return shape[0]
