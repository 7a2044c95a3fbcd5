"""From a 4D image to region series: the mean of every region of the atlas, cleaned by nilearn."""

from collections.abc import Sequence
from dataclasses import dataclass

import nibabel as nib
import numpy as np
from nilearn.maskers import NiftiLabelsMasker
from nilearn.signal import clean, standardize_signal
from numpy.typing import NDArray

from brainfed.cohort.settings import ExtractionSettings
from brainfed.imaging.atlas import Atlas
from brainfed.imaging.confounds import read_confounds
from brainfed.imaging.coverage import see_atlas
from brainfed.imaging.region_series import RegionSeries
from brainfed.imaging.region_signal import rounding_regions
from brainfed.imaging.scan import Scan, read_scan
from brainfed.runtime.errors import UserError

SHORTEST_FILTERED = 34


@dataclass(frozen=True)
class ScanFiles:
    """Where one subject's data lie; `tr` in s overrules the image header."""

    image: str
    confounds: str | None = None
    tr: float | None = None


def extract(
    subject: str,
    files: ScanFiles,
    atlas: Atlas,
    settings: ExtractionSettings,
    confound_columns: Sequence[str] = (),
) -> RegionSeries:
    """Average and clean one subject's scan.

    Raises:
        UserError: the image, its space, its repetition time, its length or its confounds cannot be used.
    """
    scan = read_scan(subject, files.image)
    tr = scan.tr if files.tr is None else files.tr
    _check_filter(scan, tr, settings)
    confounds = None
    if files.confounds is not None:
        confounds = read_confounds(subject, files.confounds, confound_columns, scan.voxels.shape[3])
    seen = see_atlas(scan, atlas)
    present = np.unique(seen.labels[seen.labels > 0])
    masker = NiftiLabelsMasker(
        nib.Nifti1Image(seen.labels, scan.affine), standardize=None, resampling_target=None, reports=False
    )
    means = masker.fit_transform(nib.Nifti1Image(scan.voxels, scan.affine)).astype(np.float64)
    signals = clean_means(means, settings, tr, confounds)
    series = np.full((len(signals), len(atlas.indices)), np.nan, dtype=np.float32)
    column = np.searchsorted(present, atlas.indices)
    found = np.isin(atlas.indices, present)
    series[:, found] = signals[:, column[found]]
    return RegionSeries(series, seen.coverage, tr)


def clean_means(
    means: NDArray[np.float64], settings: ExtractionSettings, tr: float, confounds: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Clean the (time, R) means of regions.

    A region of which nothing but rounding is left (a constant, a ramp, a confound) is 0 throughout:
    standardised, its rounding noise would pass for a signal.
    """
    cleaned = clean(
        means,
        detrend=settings.detrend,
        standardize=None,
        confounds=confounds,
        low_pass=settings.low_pass,
        high_pass=settings.high_pass,
        t_r=None if np.isnan(tr) else tr,
    )
    cleaned = np.where(rounding_regions(cleaned, means), 0.0, cleaned)
    return np.asarray(standardize_signal(cleaned, standardize="zscore_sample") if settings.standardise else cleaned)


def _check_filter(scan: Scan, tr: float, settings: ExtractionSettings) -> None:
    if settings.low_pass is None and settings.high_pass is None:
        return
    where = f"Subject {scan.subject}, {scan.file}"
    if np.isnan(tr):
        raise UserError(
            f"{where}: expected a repetition time for the band-pass, found none in the header; set `tr` for its site "
            "or turn high_pass and low_pass off."
        )
    if settings.low_pass is not None and settings.low_pass >= 0.5 / tr:
        raise UserError(
            f"{where}: expected low_pass below {0.5 / tr:.4g} Hz (half the sampling rate at TR {tr:.4g} s), found "
            f"{settings.low_pass} Hz; lower it."
        )
    if scan.voxels.shape[3] < SHORTEST_FILTERED:
        raise UserError(
            f"{where}: expected at least {SHORTEST_FILTERED} volumes for the band-pass, found {scan.voxels.shape[3]}; "
            "leave the scan out or turn the filter off."
        )
