"""Extract region series from a 4D image: the mean of every region of the atlas, cleaned by nilearn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from nilearn.signal import clean, standardize_signal
from numpy.typing import NDArray

from brainfed.cohort.settings.cohort import ExtractionSettings
from brainfed.imaging.extraction.confounds import read_confounds
from brainfed.imaging.extraction.temporal_snr import temporal_snr
from brainfed.imaging.scans.atlas import Atlas
from brainfed.imaging.scans.probabilistic_atlas import ProbabilisticAtlas
from brainfed.imaging.scans.region_means import average_regions
from brainfed.imaging.scans.repetition_time import refuse_wrong_unit
from brainfed.imaging.scans.scan import Scan, read_scan
from brainfed.imaging.series.region_series import RegionSeries
from brainfed.imaging.series.region_signal import rounding_regions
from brainfed.runtime.errors import UserError

SHORTEST_FILTERED = 34


class TooShortError(UserError):
    """A run has too few volumes; other runs of the subject may have enough."""


@dataclass(frozen=True)
class ScanFiles:
    """Files of one subject; `tr` in s overrules the image header."""

    image: str
    confounds: str | None = None
    tr: float | None = None


def extract(
    subject: str,
    files: ScanFiles,
    atlas: Atlas | ProbabilisticAtlas,
    settings: ExtractionSettings,
    confound_columns: Sequence[str] = (),
) -> RegionSeries:
    """Average and clean one subject's scan.

    Raises:
        UserError: the image, its space, its repetition time, its length or its confounds are unusable.
    """
    scan = read_scan(subject, files.image)
    tr = scan.tr if files.tr is None else files.tr
    confounds = None
    if files.confounds is not None:
        confounds = read_confounds(subject, files.confounds, confound_columns, scan.voxels.shape[3]).values
    return extract_scan(scan, atlas, settings, tr, confounds)


def extract_scan(
    scan: Scan,
    atlas: Atlas | ProbabilisticAtlas,
    settings: ExtractionSettings,
    tr: float,
    confounds: NDArray[np.float64] | None = None,
    kept: NDArray[np.intp] | None = None,
) -> RegionSeries:
    """Average and clean a scan in memory.

    Args:
        scan: the image.
        atlas: the parcellation or maps.
        settings: cleaning of the means.
        tr: repetition time in s, NaN if unknown.
        confounds: (volumes, confounds) to regress out.
        kept: numbers of the volumes that were not scrubbed; None: all.

    Raises:
        UserError: the scan's space, its repetition time or its length is unusable, or the confounds leave nothing.
    """
    check_cleaning(f"Subject {scan.subject}, {scan.file}", scan.voxels.shape[3], tr, settings, confounds, kept)
    averaged = average_regions(scan, atlas)
    seen = ~np.isnan(averaged.means).all(axis=0)
    signals = clean_means(averaged.means[:, seen].astype(np.float64), settings, tr, confounds, kept)
    series = np.full((len(signals), len(seen)), np.nan, dtype=np.float32)
    series[:, seen] = signals
    return RegionSeries(
        series,
        averaged.coverage,
        tr,
        volumes=scan.voxels.shape[3],
        tsnr=temporal_snr(averaged.means, kept),
        resampled=averaged.resampled,
        suspicion=averaged.suspicion,
    )


def clean_means(
    means: NDArray[np.float64],
    settings: ExtractionSettings,
    tr: float,
    confounds: NDArray[np.float64] | None = None,
    kept: NDArray[np.intp] | None = None,
) -> NDArray[np.float64]:
    """Clean the (time, R) means of regions; returns (kept, R) if volumes were scrubbed.

    Scrubbed volumes are interpolated for the filter and cut out before confounds are regressed out.

    A region with only rounding noise left (a constant, a ramp, a confound) is 0 throughout; standardising
    would turn the noise into a signal.
    """
    cleaned = clean(
        means,
        detrend=settings.detrend,
        standardize=None,
        confounds=confounds,
        sample_mask=kept,
        low_pass=settings.low_pass,
        high_pass=settings.high_pass,
        t_r=None if np.isnan(tr) else tr,
        # All regions in one call of scipy; without a copy nilearn filters one region after the other.
        butterworth__copy=True,
    )
    cleaned = np.where(rounding_regions(cleaned, means), 0.0, cleaned)
    return np.asarray(standardize_signal(cleaned, standardize="zscore_sample") if settings.standardise else cleaned)


def check_cleaning(
    where: str,
    volumes: int,
    tr: float,
    settings: ExtractionSettings,
    confounds: NDArray[np.float64] | None = None,
    kept: NDArray[np.intp] | None = None,
) -> None:
    """Refuse a run that the band-pass cannot filter, or whose confounds leave no degree of freedom.

    Args:
        where: subject and file.
        volumes: number of acquired volumes.
        tr: repetition time in s, NaN if unknown.
        settings: cleaning of the means.
        confounds: (volumes, confounds) to regress out.
        kept: numbers of the volumes that were not scrubbed; None: all.

    Raises:
        TooShortError: the run has too few volumes, or as many regressors as degrees of freedom.
        UserError: the run has no repetition time, an impossible one, or one too long for `low_pass`.
    """
    refuse_wrong_unit(where, tr)
    if settings.low_pass is not None or settings.high_pass is not None:
        _check_filter(where, volumes, tr, settings)
    if confounds is not None:
        _check_freedom(where, confounds, volumes, tr, settings, kept)


def _check_filter(where: str, volumes: int, tr: float, settings: ExtractionSettings) -> None:
    if np.isnan(tr):
        raise UserError(
            f"{where}: expected a repetition time for the band-pass, found none in the header; set `tr` for its site "
            "or turn high_pass and low_pass off."
        )
    for name, edge in (("low_pass", settings.low_pass), ("high_pass", settings.high_pass)):
        if edge is not None and edge >= 0.5 / tr:
            raise UserError(
                f"{where}: expected {name} below {0.5 / tr:.4g} Hz (half the sampling rate at TR {tr:.4g} s), found "
                f"{edge} Hz; lower it."
            )
    if volumes < SHORTEST_FILTERED:
        raise TooShortError(
            f"{where}: expected at least {SHORTEST_FILTERED} volumes for the band-pass, found {volumes}; leave the "
            "scan out or turn the filter off."
        )


def _check_freedom(
    where: str,
    confounds: NDArray[np.float64],
    volumes: int,
    tr: float,
    settings: ExtractionSettings,
    kept: NDArray[np.intp] | None,
) -> None:
    """Refuse as many independent regressors as degrees of freedom: only scaled-up rounding would remain.

    A band-pass leaves about 2 TR (low_pass - high_pass) degrees of freedom a volume; mean and trend take one each.
    """
    used = confounds if kept is None else confounds[kept]
    spread = used.std(axis=0)
    varying = spread > 0
    count = int(np.linalg.matrix_rank((used[:, varying] - used[:, varying].mean(axis=0)) / spread[varying]))
    share = 1.0
    if settings.low_pass is not None or settings.high_pass is not None:
        nyquist = 0.5 / tr
        share = ((settings.low_pass or nyquist) - (settings.high_pass or 0.0)) / nyquist
    freedom = min(share * len(used), len(used) - 1 - settings.detrend)
    if count >= freedom:
        raise TooShortError(
            f"{where}: expected more degrees of freedom than the {count} regressors, found about "
            f"{freedom:.0f} ({len(used)} of {volumes} volumes kept, {100 * share:.0f} % of their band "
            "passed); regress out fewer confounds or pass a wider band, or leave the run out."
        )
