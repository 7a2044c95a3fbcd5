"""Write one part of a cohort's region series, with quality and coverage."""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.imaging.series.region_series import RegionSeries
from brainfed.imaging.series.region_signal import constant_regions, empty_regions, varying_regions
from brainfed.runtime.artefacts import write_arrays, write_table
from brainfed.runtime.errors import UserError

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
        load: loads the regions of one subject.
        regions: returns R names; called after the last subject.
        atlas: name of the parcellation.
        settings: the cohort's settings.
        out: paths to write.

    Raises:
        UserError: a series is unusable and `on_invalid` is `error`.
    """
    series: dict[str, NDArray[np.float32]] = {}
    quality: list[dict[str, object]] = []
    coverage: dict[str, NDArray[np.float64]] = {}
    runs: dict[str, list[int]] = {}
    for done, subject in enumerate(subjects, start=1):
        try:
            found = load(subject)
            check_series(subject, found.series, settings.min_timepoints)
        except UserError as error:
            if settings.on_invalid == "error":
                raise
            logger.warning("%s dropped: %s", subject, error)
            quality.append(quality_row(subject, None, str(error)))
            continue
        series[subject], coverage[subject] = found.series, found.coverage
        quality.append(quality_row(subject, found, ""))
        if len(found.runs) > 1:
            runs[subject] = list(found.runs)
        logger.info("%s: %d volumes, %d regions (%d/%d)", subject, *found.series.shape, done, len(subjects))
    names = regions()
    several = {"runs": runs} if runs else {}
    write_arrays(out.series, series, {"atlas": atlas, "regions": list(names)} | several)
    write_table(
        out.quality, pd.DataFrame(quality).astype(dict.fromkeys(("tr", "header_tr", "mean_fd", "tsnr"), "float64"))
    )
    write_table(out.coverage, coverage_table(coverage, names))


def check_series(subject: str, series: NDArray[np.float32], least: int) -> None:
    """Refuse a (time, R) series of fewer than `least` volumes, or without a region that varies.

    Args:
        subject: id, perhaps with the file, for messages.
        series: of the subject.
        least: fewest volumes.

    Raises:
        UserError: the series is too short or has no varying region.
    """
    check_length(subject, len(series), least)
    _check_signal(subject, series)


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


def coverage_table(coverage: Mapping[str, NDArray[np.float64]], regions: Sequence[str]) -> pd.DataFrame:
    """Columns subject, region, coverage of subjects' (R,) coverage."""
    return pd.DataFrame(
        {
            "subject": np.repeat(np.asarray(list(coverage), dtype=object), len(regions)),
            "region": np.tile(np.asarray(regions, dtype=object), len(coverage)),
            "coverage": np.concatenate([*coverage.values(), np.empty(0)]),
        }
    ).astype({"subject": "str", "region": "str"})


def checksum(series: NDArray[np.float32]) -> str:
    """SHA-256 of the bytes of a series."""
    return hashlib.sha256(np.ascontiguousarray(series).tobytes()).hexdigest()


def _check_signal(subject: str, series: NDArray[np.float32]) -> None:
    if not varying_regions(series).any():
        raise UserError(
            f"Subject {subject}: expected a signal, found all {series.shape[1]} regions constant or empty; drop the "
            "subject (on_invalid: drop)."
        )


def quality_row(subject: str, found: RegionSeries | None, problem: str) -> dict[str, object]:
    """One row of the quality table; zeros for an unreadable series."""
    if found is None:
        found = RegionSeries(np.empty((0, 0), dtype=np.float32), np.empty(0), float("nan"))
        constant, empty, runs, digest = 0, 0, 0, ""
    else:
        constant, empty = int(constant_regions(found.series).sum()), int(empty_regions(found.series).sum())
        runs = len(found.runs) or 1
        digest = checksum(found.series)
    return {
        "subject": subject,
        "timepoints": len(found.series),
        "volumes": found.volumes or len(found.series),
        "tr": found.tr,
        "header_tr": found.header_tr,
        "mean_fd": found.mean_fd,
        "tsnr": found.tsnr,
        "constant_regions": constant,
        "empty_regions": empty,
        "runs": runs,
        "checksum": digest,
        "resampled": found.resampled,
        "suspicion": found.suspicion,
        "problem": problem,
    }
