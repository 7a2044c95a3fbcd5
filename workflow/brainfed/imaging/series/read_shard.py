"""Read one part of a cohort's region series from files of text or arrays."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.imaging.scans.region_table import read_region_table
from brainfed.imaging.series.header import is_number
from brainfed.imaging.series.region_series import RegionSeries
from brainfed.imaging.series.region_signal import varying_regions
from brainfed.imaging.series.roi_series import NamedSeries, read_roi_series
from brainfed.imaging.series.shard import ShardFiles, check_series, write_shard
from brainfed.runtime.errors import UserError


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
