"""Read one part of a cohort's region series from text files."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.region_series import RegionSeries
from brainfed.imaging.region_signal import varying_regions
from brainfed.imaging.region_table import read_region_table
from brainfed.imaging.roi_series import read_roi_series
from brainfed.imaging.shard import ShardFiles, write_shard
from brainfed.runtime.errors import UserError


def read_shard(
    files: Mapping[str, str | Path], settings: CohortSettings, out: ShardFiles, tr: Mapping[str, float] | None = None
) -> None:
    """Read the region series of some subjects, subject id -> file; `tr` in s where it is known.

    Regions are named by `settings.labels`, else by the files' header, else by number.

    Raises:
        UserError: a file cannot be used and `on_invalid` is `error`; the headers of two files differ.
    """
    known = tr or {}
    names = None if settings.labels is None else read_region_table(settings.labels)[1]
    expected = settings.regions if names is None else len(names)
    headers: dict[str, tuple[str, ...]] = {}

    def load(subject: str) -> RegionSeries:
        named = read_roi_series(subject, files[subject], expected)
        headers[subject] = named.regions if names is None else names
        first = next(iter(headers))
        check_names(subject, files[subject], headers[subject], files[first], headers[first])
        coverage = np.where(varying_regions(named.series), 1.0, 0.0)
        return RegionSeries(named.series, coverage, known.get(subject, float("nan")))

    by_number = tuple(str(index) for index in range(1, (expected or 0) + 1))
    write_shard(sorted(files), load, lambda: next(iter(headers.values()), by_number), settings.atlas, settings, out)


def check_names(
    subject: str, file: str | Path, names: tuple[str, ...], first: str | Path, expected: tuple[str, ...]
) -> None:
    """Refuse a header that names other regions than that of the first file.

    Raises:
        UserError: names or order differ.
    """
    if names != expected:
        raise UserError(
            f"Subject {subject}, {file}: expected the regions of {first}, found other names or another order in the "
            "header; bring them into one order."
        )
