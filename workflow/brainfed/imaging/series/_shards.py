"""Shards of region series: written, read from files, loaded as a cohort."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging import SeriesSettings
from brainfed.imaging.scans import read_region_table
from brainfed.imaging.series._roi_series import (
    NamedSeries,
    RegionSeries,
    constant_regions,
    empty_regions,
    read_roi_series,
    varying_regions,
)
from brainfed.imaging.series._text import is_number
from brainfed.runtime import (
    Float32,
    Float64,
    UserError,
    array_shapes,
    map_array,
    read_arrays,
    write_arrays,
    write_table,
    writing_blocks,
)

Series = Float32

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShardFiles:
    """Paths of a part: series, quality and coverage."""

    series: str | Path
    quality: str | Path
    coverage: str | Path


def write_shard(
    subjects: Sequence[str],
    load: Callable[[str], RegionSeries],
    regions: Callable[[], tuple[str, ...]],
    atlas: str,
    settings: CohortSettings,
    out: ShardFiles,
) -> None:
    """Load and write some subjects.

    Args:
        subjects: ids, in ascending order.
        regions: returns R names; called after the last subject.

    Raises:
        UserError: a series is unusable and `on_invalid` is `error`.
    """
    series: dict[str, Float32] = {}
    quality: list[dict[str, object]] = []
    coverage: dict[str, Float64] = {}
    runs: dict[str, list[int]] = {}
    for done, subject in enumerate(subjects, start=1):
        try:
            region_series = load(subject)
            check_series(subject, region_series.series, settings.min_timepoints)
        except UserError as error:
            if settings.on_invalid == "error":
                raise
            logger.warning("%s dropped: %s", subject, error)
            quality.append(quality_row(subject, None, str(error)))
            continue
        series[subject], coverage[subject] = region_series.series, region_series.coverage
        quality.append(quality_row(subject, region_series, ""))
        if len(region_series.runs) > 1:
            runs[subject] = list(region_series.runs)
        logger.info("%s: %d volumes, %d regions (%d/%d)", subject, *region_series.series.shape, done, len(subjects))
    names = regions()
    several = {"runs": runs} if runs else {}
    write_arrays(out.series, series, {"atlas": atlas, "regions": list(names)} | several)
    write_table(
        out.quality, pd.DataFrame(quality).astype(dict.fromkeys(("tr", "header_tr", "mean_fd", "tsnr"), "float64"))
    )
    write_table(out.coverage, coverage_table(coverage, names))


def check_series(subject: str, series: Float32, least: int) -> None:
    """Refuse a (time, R) series of fewer than `least` volumes, or without a region that varies.

    Args:
        subject: id, perhaps with the file, for messages.

    Raises:
        UserError: the series is too short or has no varying region.
    """
    check_length(subject, len(series), least)
    if not varying_regions(series).any():
        raise UserError(
            f"Subject {subject}: expected a signal, found all {series.shape[1]} regions constant or empty; drop the "
            "subject (on_invalid: drop)."
        )


def check_length(subject: str, timepoints: int, least: int) -> None:
    """Refuse a series of fewer than `least` volumes.

    Raises:
        UserError: the series is shorter.
    """
    if timepoints < least:
        raise UserError(
            f"Subject {subject}: expected at least {least} time points, found {timepoints}; lower "
            "min_timepoints, or leave the subject out (on_invalid: drop)."
        )


def coverage_table(coverage: Mapping[str, Float64], regions: Sequence[str]) -> pd.DataFrame:
    """Columns subject, region, coverage of subjects' (R,) coverage."""
    return pd.DataFrame(
        {
            "subject": np.repeat(np.asarray(list(coverage), dtype=object), len(regions)),
            "region": np.tile(np.asarray(regions, dtype=object), len(coverage)),
            "coverage": np.concatenate([*coverage.values(), np.empty(0)]),
        }
    ).astype({"subject": "str", "region": "str"})


def checksum(series: Float32) -> str:
    """SHA-256 of the bytes of a series."""
    return hashlib.sha256(np.ascontiguousarray(series).tobytes()).hexdigest()


def quality_row(subject: str, series: RegionSeries | None, problem: str) -> dict[str, object]:
    """One row of the quality table; zeros for an unreadable series."""
    if series is None:
        series = RegionSeries(np.empty((0, 0), dtype=np.float32), np.empty(0), float("nan"))
        constant, empty, runs, digest = 0, 0, 0, ""
    else:
        constant, empty = int(constant_regions(series.series).sum()), int(empty_regions(series.series).sum())
        runs = len(series.runs) or 1
        digest = checksum(series.series)
    return {
        "subject": subject,
        "timepoints": len(series.series),
        "volumes": series.volumes or len(series.series),
        "tr": series.tr,
        "header_tr": series.header_tr,
        "mean_fd": series.mean_fd,
        "tsnr": series.tsnr,
        "constant_regions": constant,
        "empty_regions": empty,
        "runs": runs,
        "checksum": digest,
        "resampled": series.resampled,
        "suspicion": series.suspicion,
        "problem": problem,
    }


class SeriesReader:
    """Reads the files of one part in turn, and compares each with the region table or the first usable file.

    Both the jobs and `brainfed check` read series by this class. A cohort's region table names the regions, else the
    header of a file, else numbers.

    Raises:
        UserError: the region table is unusable.
    """

    def __init__(self, settings: CohortSettings) -> None:
        self._settings = settings
        self._table = None if settings.labels is None else read_region_table(settings.labels)
        self._expected = settings.regions if self._table is None else len(self._table[1])
        self._first: tuple[str | Path, tuple[str, ...]] | None = None

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of the regions after the first usable file; before, those of the region table or numbers."""
        if self._first is not None:
            return self._first[1]
        if self._table is not None:
            return self._table[1]
        return tuple(str(index) for index in range(1, (self._expected or 0) + 1))

    @property
    def first_file(self) -> str | Path | None:
        """The first usable file."""
        return None if self._first is None else self._first[0]

    def read(self, subject: str, file: str | Path) -> NamedSeries:
        """Read one subject's series under the names of the cohort's regions.

        Raises:
            UserError: the file is unusable, or names other regions than the table or the first file.
        """
        named = read_roi_series(
            subject,
            file,
            self._expected,
            self._settings.header,
            None if self._table is None else self._table[0].tolist(),
            transposed=self._settings.transposed,
            variable=self._settings.variable,
            known=() if self._table is None else self._table[1],
        )
        if self._table is not None:
            named = NamedSeries(named.series, self._of_table(subject, file, named.regions))
        first = self._first or (file, named.regions)
        check_names(subject, file, named.regions, *first)
        check_series(f"{subject}, {file}", named.series, self._settings.min_timepoints)
        self._first = first
        return named

    def _of_table(self, subject: str, file: str | Path, header: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the table; a header with the same regions in another order is refused."""
        assert self._table is not None
        indices, names = self._table
        for known in (names, tuple(map(str, indices.tolist()))):
            if header != known and sorted(header) == sorted(known):
                check_names(subject, file, header, str(self._settings.labels), known)
        return names


def read_shard(
    files: Mapping[str, str | Path], settings: CohortSettings, out: ShardFiles, tr: Mapping[str, float] | None = None
) -> None:
    """Read the region series of some subjects, subject id -> file; `tr` in s where known.

    `settings.labels` names the regions, else the files' header, else numbers.

    Raises:
        UserError: a file is unusable and `on_invalid` is `error`, or the headers of two files differ.
    """
    known = tr or {}
    reader = SeriesReader(settings)

    def load(subject: str) -> RegionSeries:
        series = reader.read(subject, files[subject]).series
        coverage = np.where(varying_regions(series), 1.0, 0.0)
        return RegionSeries(series, coverage, known.get(subject, float("nan")))

    write_shard(sorted(files), load, lambda: reader.regions, settings.atlas, settings, out)


def check_names(
    subject: str, file: str | Path, names: tuple[str, ...], first: str | Path, expected: tuple[str, ...]
) -> None:
    """Refuse a header with other regions than the first file's.

    Raises:
        UserError: names or order differ.
    """
    if names != expected:
        numbers = all(map(is_number, names)) and names != tuple(str(place) for place in range(1, len(names) + 1))
        remedy = "set `header: false` if the first line is a volume, else " if numbers else ""
        raise UserError(
            f"Subject {subject}, {file}: expected the regions of {first}, found other names or another order in the "
            f"header; {remedy}bring them into one order."
        )


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
    every = list(parts)
    used = [(path, names) for path, names, holds in every if holds]
    for path, names in used:
        if names != used[0][1]:
            raise UserError(
                f"{path}: expected the {len(used[0][1])} regions of {used[0][0]}, found other names or another order; "
                "bring the source files into one order."
            )
    return next((names for _, names in used or [part[:2] for part in every]), ())


def load_runs(files: Sequence[str | Path]) -> dict[str, tuple[int, ...]]:
    """Subject -> lengths of its runs in the order of its series, for subjects with several runs."""
    by_part = (read_arrays(path, []).metadata.get("runs", {}) for path in files)
    return {subject: tuple(lengths) for runs in by_part for subject, lengths in runs.items()}


# Standardised region series, alone and of all subjects in one file.


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

    The arrays are those of `samples.SeriesInputs`.

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
