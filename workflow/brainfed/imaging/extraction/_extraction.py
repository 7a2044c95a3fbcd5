"""Extract region series from a 4D image: repetition time, cleaning, signal to noise, several runs."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from nilearn.signal import clean
from numpy.typing import NDArray

from brainfed.cohort.settings import ExtractionSettings
from brainfed.imaging.extraction._confounds import read_confounds
from brainfed.imaging.scans import Atlas, ProbabilisticAtlas, Scan, average_regions, read_scan
from brainfed.imaging.series import RELATIVE_FLOOR, RegionSeries, rounding_regions
from brainfed.runtime import Float64, UserError

KEY = "RepetitionTime"
SHORTEST, LONGEST = 0.05, 30.0
"""Repetition times in s beyond which one is taken for a wrong unit."""
TOLERANCE = 1e-3
"""Difference of two repetition times in s that rounding explains."""


def sidecar_tr(subject: str, files: Sequence[str | Path]) -> float:
    """Repetition time in s of the last file that states one, the nearest to the image; else NaN.

    Raises:
        UserError: a file is not a JSON object, or the time is not a number above 0.
    """
    tr = float("nan")
    for file in files:
        where = f"Subject {subject}, {file}"
        try:
            content = json.loads(Path(file).read_text(encoding="utf-8-sig"))
        except (OSError, ValueError, RecursionError) as error:
            raise UserError(f"{where}: expected a JSON sidecar, found none ({error}); repair it.") from error
        if not isinstance(content, dict):
            raise UserError(f"{where}: expected a JSON object, found {type(content).__name__}; repair it.")
        if KEY in content:
            tr = _checked(where, content[KEY])
    return tr


def agree(first: float, second: float) -> bool:
    """Whether two repetition times agree; an unknown one agrees with all."""
    return bool(np.isnan(first) or np.isnan(second) or abs(first - second) <= TOLERANCE)


def refuse_wrong_unit(where: str, tr: float) -> None:
    """Refuse an impossible repetition time; NaN is accepted.

    Raises:
        UserError: it is above 30 s or below 0.05 s.
    """
    if tr > LONGEST or tr < SHORTEST:
        limit = f"at most {LONGEST:g}" if tr > LONGEST else f"at least {SHORTEST:g}"
        raise UserError(
            f"{where}: expected a repetition time of {limit} s, found {tr:g} s; {_reason(tr)}ix it there, or set `tr` "
            "for its site."
        )


def _reason(tr: float) -> str:
    """A question about the unit if another one makes an impossible time a usual one, and the first letter of `fix`."""
    for unit, length in (("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6)):
        if SHORTEST <= tr * length <= LONGEST:
            return f"is it in {unit}? F"
        if SHORTEST <= tr / length <= LONGEST:
            return f"does its unit say {unit} for a number in s? F"
    return "f"


def chosen_tr(given: float | None, stated: float, header: float) -> float:
    """Repetition time in s of the config, else of the sidecars, else of the header."""
    return next((time for time in (given, stated) if time is not None and not np.isnan(time)), header)


def check_one_protocol(subject: str, runs: Sequence[tuple[str, float]]) -> None:
    """Refuse runs (image, repetition time in s) with different repetition times.

    Raises:
        UserError: one differs from the first.
    """
    first, expected = runs[0]
    for image, tr in runs:
        if not agree(tr, expected):
            raise UserError(
                f"Subject {subject}, {image}: expected the repetition time of {first}, {expected:g} s, found {tr:g} "
                "s; choose the runs of one protocol under bids.run_numbers or bids.sessions."
            )


def _checked(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < sys.float_info.max:
        raise UserError(f"{where}: expected {KEY} as a number of seconds above 0, found {value!r}; fix it.")
    refuse_wrong_unit(where, float(value))
    return float(value)


def temporal_snr(means: NDArray[np.floating], kept: NDArray[np.intp] | None = None) -> float:
    """Median over regions of mean / standard deviation about a linear trend, of the (time, R) means before cleaning.

    The ratio is of regions' means, not of voxels: an atlas of larger regions has a higher one. Regions that were not
    seen (NaN) or do not vary beyond rounding are left out; NaN if none is left. An image without its mean has a
    ratio near 0.

    Args:
        kept: numbers of the steady-state volumes that were not scrubbed; None: all.
    """
    volumes = np.arange(len(means)) if kept is None else kept
    seen = means[volumes][:, ~np.isnan(means).any(axis=0)].astype(np.float64)
    trend = np.column_stack([np.ones(len(volumes)), volumes])
    off = seen - trend @ np.linalg.lstsq(trend, seen, rcond=None)[0]
    spread, level = off.std(axis=0), seen.mean(axis=0)
    varying = spread > RELATIVE_FLOOR * np.abs(seen).max(axis=0, initial=0)
    return float(np.median(level[varying] / spread[varying])) if varying.any() else float("nan")


# Extract region series from a 4D image: the mean of every region of the atlas, cleaned by nilearn.

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
    confounds: Float64 | None = None,
    kept: NDArray[np.intp] | None = None,
) -> RegionSeries:
    """Average and clean a scan in memory.

    Args:
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
    means: Float64,
    settings: ExtractionSettings,
    tr: float,
    confounds: Float64 | None = None,
    kept: NDArray[np.intp] | None = None,
) -> Float64:
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
    if not settings.standardise:
        return np.asarray(cleaned)
    # A sum over columns rounds by the order in memory.
    cleaned = np.ascontiguousarray(cleaned)
    centred = cleaned - cleaned.mean(axis=0)
    deviation = centred.std(axis=0, ddof=1)
    return np.asarray(centred / np.where(deviation < np.finfo(np.float64).eps, 1.0, deviation))


def check_cleaning(
    where: str,
    volumes: int,
    tr: float,
    settings: ExtractionSettings,
    confounds: Float64 | None = None,
    kept: NDArray[np.intp] | None = None,
) -> None:
    """Refuse a run that the band-pass cannot filter, or whose confounds leave no degree of freedom.

    Args:
        tr: repetition time in s, NaN if unknown.
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
    where: str, confounds: Float64, volumes: int, tr: float, settings: ExtractionSettings, kept: NDArray[np.intp] | None
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


def join_runs(runs: Sequence[RegionSeries], *, apart: bool = False) -> RegionSeries:
    """Concatenate cleaned runs in time.

    A region that one run does not cover is unseen in the joined series, as its column would end within it. Runs with a
    connectivity of their own (`apart`) have NaN in that run only. Coverage is the lowest of the runs. Motion and tSNR
    are means over the acquired volumes of the runs with known values. Remarks on the runs' space are joined, each once.

    Args:
        runs: at least one, with one repetition time.
        apart: whether each run has a connectivity of its own.
    """
    if len(runs) == 1:
        return runs[0]
    series = np.concatenate([run.series for run in runs])
    if not apart:
        series[:, np.isnan(series).any(axis=0)] = np.nan
    return RegionSeries(
        series=series,
        coverage=np.where(np.isnan(series).any(axis=0), 0.0, np.min([run.coverage for run in runs], axis=0)),
        tr=runs[0].tr,
        volumes=sum(run.volumes for run in runs),
        mean_fd=_mean([run.mean_fd for run in runs], runs),
        tsnr=_mean([run.tsnr for run in runs], runs),
        runs=tuple(len(run.series) for run in runs),
        resampled=_joined(run.resampled for run in runs),
        suspicion=_joined(run.suspicion for run in runs),
        header_tr=next((run.header_tr for run in runs if not np.isnan(run.header_tr)), float("nan")),
    )


def _joined(remarks: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(remark for remark in remarks if remark))


def _mean(values: Sequence[float], runs: Sequence[RegionSeries]) -> float:
    weights = np.array([run.volumes for run in runs], dtype=np.float64)
    known = ~np.isnan(values)
    return float(np.average(np.asarray(values)[known], weights=weights[known])) if known.any() else float("nan")
