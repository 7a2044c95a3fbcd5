"""Write one part of a cohort's region series: the series, their quality, the coverage of their regions."""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.region_series import RegionSeries
from brainfed.imaging.region_signal import constant_regions, empty_regions, varying_regions
from brainfed.runtime.artefacts import write_arrays, write_table
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShardFiles:
    """Where a part is written: the series, their quality, the coverage of their regions."""

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
        load: the regions of one subject.
        regions: R names, asked for after the last subject.
        atlas: name of the parcellation.
        settings: the cohort's settings.
        out: where to write.

    Raises:
        UserError: a series cannot be loaded or used and `on_invalid` is `error`.
    """
    series: dict[str, NDArray[np.float32]] = {}
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


def _check_usable(subject: str, series: NDArray[np.float32], settings: CohortSettings) -> None:
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
