"""Region series in files, read as the jobs read them: part by part, by the same reader."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from brainfed.checking.exclusions import silent_regions
from brainfed.checking.finding import Finding, boundary, found_at
from brainfed.checking.people import Look
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.listed import ListedSubject
from brainfed.imaging.series.files import shared_regions
from brainfed.imaging.series.read_shard import SeriesReader
from brainfed.imaging.series.region_signal import varying_regions
from brainfed.imaging.series.shard import checksum
from brainfed.runtime.errors import Refuse, UserError


class SeriesCheck:
    """Reads the series of a cohort.

    Attributes:
        mistakes: those of the region table; the series are then read without it.
        regions: number of regions, 0 where it is not known.
    """

    def __init__(self, name: str, settings: CohortSettings) -> None:
        self.mistakes: list[UserError] = []
        usable = settings.labels is not None and Path(settings.labels).is_file()
        self._settings = settings if usable else replace(settings, labels=None)
        self.regions = settings.regions or 0
        with boundary(f"Cohort {name!r}, region table {settings.labels}", self.mistakes.append):
            self.regions = len(SeriesReader(self._settings).regions)
        if self.mistakes:
            self._settings = replace(settings, labels=None)
        self._readers: dict[str, SeriesReader] = {}
        self._used: set[str] = set()

    def look(self, listed: ListedSubject, refuse: Refuse) -> Look | None:
        """The length and the content of one subject's series; None where it cannot be used."""
        reader = self._readers.setdefault(listed.shard, SeriesReader(self._settings))
        series = None
        with boundary(f"Subject {listed.subject}, {listed.series}", refuse):
            series = reader.read(listed.subject, str(listed.series)).series
        if series is None:
            return None
        self._used.add(listed.shard)
        silent = int((~varying_regions(series)).sum())
        barely = silent if self._settings.min_coverage > 0 else 0
        measures = {"silent_regions": silent, "barely_seen_regions": barely, "coverage": 1 - silent / series.shape[1]}
        return Look(len(series), checksum(series), measures=measures)

    def remarks(self, looks: Mapping[str, Look], place: str) -> Iterator[Finding]:
        """Parts that name their regions differently, and subjects with regions without a signal."""
        parts = (
            (reader.first_file or shard, reader.regions, shard in self._used)
            for shard, reader in sorted(self._readers.items())
        )
        mistakes: list[UserError] = []
        with boundary(place, mistakes.append):
            shared_regions(parts)
        yield from (found_at(place, error) for error in mistakes)
        yield from silent_regions(looks, self.regions, self._settings, place)
