"""One part of a cohort's region series: read or extract its subjects, note their quality, write three files."""

import gc
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.atlas import Atlas, read_region_table
from brainfed.imaging.extraction import RegionSeries, ScanFiles, extract
from brainfed.imaging.region_signal import constant_regions, empty_regions, varying_regions
from brainfed.imaging.roi_series import read_roi_series
from brainfed.runtime.artefacts import read_arrays, write_arrays, write_table
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)

Series = NDArray[np.float32]


@dataclass(frozen=True)
class ShardFiles:
    """Where a part is written: the series, their quality, the coverage of their regions."""

    series: str | Path
    quality: str | Path
    coverage: str | Path


def extract_shard(scans: Mapping[str, ScanFiles], atlas: Atlas, settings: CohortSettings, out: ShardFiles) -> None:
    """Extract the region series of some subjects' NIfTI scans.

    Raises:
        UserError: a scan cannot be used and `on_invalid` is `error`.
    """

    def load(subject: str) -> RegionSeries:
        return extract(subject, scans[subject], atlas, settings.extraction, settings.confound_columns)

    with _quick_collection():
        _write_shard(sorted(scans), load, lambda: atlas.regions, atlas.name, settings, out)


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
        if headers[subject] != headers[first]:
            raise UserError(
                f"Subject {subject}, {files[subject]}: expected the regions of {files[first]}, found other names or "
                "another order in the header; bring them into one order."
            )
        coverage = np.where(varying_regions(named.series), 1.0, 0.0)
        return RegionSeries(named.series, coverage, known.get(subject, float("nan")))

    by_number = tuple(str(index) for index in range(1, (expected or 0) + 1))
    _write_shard(sorted(files), load, lambda: next(iter(headers.values()), by_number), settings.atlas, settings, out)


def load_series(files: Sequence[str | Path], subjects: Sequence[str]) -> tuple[dict[str, Series], tuple[str, ...]]:
    """The (time, R) series of `subjects` from several parts, and the region names that all parts share.

    Raises:
        UserError: a subject is in no part, or two parts name their regions differently.
    """
    wanted, series = set(subjects), dict[str, Series]()
    regions: tuple[str, ...] | None = None
    for path in files:
        part = read_arrays(path)
        names = tuple(part.metadata["regions"])
        if part.arrays and regions is not None and names != regions:
            raise UserError(
                f"{path}: expected the {len(regions)} regions of {files[0]}, found other names or another order; bring "
                "the source files into one order."
            )
        regions = names if part.arrays or regions is None else regions
        series.update({subject: array for subject, array in part.arrays.items() if subject in wanted})
    absent = [subject for subject in subjects if subject not in series]
    if absent:
        raise UserError(
            f"Subject {absent[0]}: expected its series in one of {len(files)} parts, found none "
            f"({len(absent)} such subjects); delete the time series and run again."
        )
    return {subject: series[subject] for subject in sorted(series)}, regions or ()


@contextmanager
def _quick_collection() -> Iterator[None]:
    """Spare the imported libraries the garbage collections that nilearn asks for several times an image.

    Each walks everything that nilearn and scikit-learn hold, about 0.1 s: most of a small scan's time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _write_shard(
    subjects: Sequence[str],
    load: Callable[[str], RegionSeries],
    regions: Callable[[], tuple[str, ...]],
    atlas: str,
    settings: CohortSettings,
    out: ShardFiles,
) -> None:
    series: dict[str, Series] = {}
    quality: list[dict[str, object]] = []
    coverage: dict[str, NDArray[np.float64]] = {}
    for done, subject in enumerate(subjects, start=1):
        try:
            found = load(subject)
            _check_usable(subject, found.series, settings)
        except UserError as error:
            if settings.on_invalid == "error":
                raise
            logger.warning("%s dropped: %s", subject, error)
            quality.append(_quality(subject, None, str(error)))
            continue
        series[subject], coverage[subject] = found.series, found.coverage
        quality.append(_quality(subject, found, ""))
        logger.info("%s: %d volumes, %d regions (%d/%d)", subject, *found.series.shape, done, len(subjects))
    names = regions()
    write_arrays(out.series, series, {"atlas": atlas, "regions": list(names)})
    write_table(out.quality, pd.DataFrame(quality).astype({"tr": "float64"}))
    write_table(
        out.coverage,
        pd.DataFrame(
            {
                "subject": np.repeat(np.asarray(list(coverage), dtype=object), len(names)),
                "region": np.tile(np.asarray(names, dtype=object), len(coverage)),
                "coverage": np.concatenate([*coverage.values(), np.empty(0)]),
            }
        ).astype({"subject": "str", "region": "str"}),
    )


def _check_usable(subject: str, series: Series, settings: CohortSettings) -> None:
    if len(series) < settings.min_timepoints:
        raise UserError(
            f"Subject {subject}: expected at least {settings.min_timepoints} time points, found {len(series)}; drop "
            "the subject (on_invalid: drop) or lower min_timepoints."
        )
    if not varying_regions(series).any():
        raise UserError(
            f"Subject {subject}: expected a signal, found all {series.shape[1]} regions constant or empty; drop the "
            "subject (on_invalid: drop)."
        )


def _quality(subject: str, found: RegionSeries | None, problem: str) -> dict[str, object]:
    """One row of the quality table; zeros where the series could not be read."""
    if found is None:
        measures: tuple[object, ...] = (0, float("nan"), 0, 0, "")
    else:
        series = found.series
        digest = hashlib.sha256(np.ascontiguousarray(series).tobytes()).hexdigest()
        constant, empty = int(constant_regions(series).sum()), int(empty_regions(series).sum())
        measures = (len(series), found.tr, constant, empty, digest)
    names = ("timepoints", "tr", "constant_regions", "empty_regions", "checksum")
    return {"subject": subject, **dict(zip(names, measures, strict=True)), "problem": problem}
