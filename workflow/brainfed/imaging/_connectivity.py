"""Functional connectivity of region series: one row of correlations a subject."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from nilearn.connectome import ConnectivityMeasure
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance, LedoitWolf

from brainfed.imaging._settings import FeatureSettings
from brainfed.imaging.series import split_runs, standardised, varying_regions
from brainfed.runtime import Float32, Float64, UserError

logger = logging.getLogger(__name__)

LARGEST_CORRELATION = 1 - 1e-7


def connectivity(
    series: Mapping[str, Float32], settings: FeatureSettings, runs: Mapping[str, Sequence[int]] | None = None
) -> Float32:
    """Compute the connectivity of every subject, in ascending order of id.

    Correlations of a region without signal are 0; it does not affect the others.

    Args:
        series: subject -> (time, R).
        settings: `pearson` or `partial`.
        runs: subject -> lengths of its runs, for connectivity that is the mean over runs.

    Returns:
        (n, R (R - 1) / 2), the strictly upper triangle in `np.triu_indices(R, 1)` order.

    Raises:
        UserError: the subjects differ in their number of regions.
        ValueError: the kind is `tangent`, which has a reference.
    """
    if settings.connectivity == "tangent":
        raise ValueError("expected pearson or partial; tangent features come from imaging.tangent_of_all")
    subjects = sorted(series)
    regions = series[subjects[0]].shape[1]
    upper = np.triu_indices(regions, 1)
    features = np.zeros((len(subjects), len(upper[0])), dtype=np.float32)
    for position, subject in enumerate(subjects):
        if series[subject].shape[1] != regions:
            raise UserError(
                f"Subject {subject}: expected {regions} regions as in subject {subjects[0]}, found "
                f"{series[subject].shape[1]}; extract all series with one atlas."
            )
        features[position] = _mean_over_runs(
            split_runs(series[subject], (runs or {}).get(subject, ())), settings, upper
        )
        if (position + 1) % 100 == 0 or position + 1 == len(subjects):
            logger.info("%s connectivity %d/%d", settings.connectivity, position + 1, len(subjects))
    return features


def to_matrices(features: NDArray[np.floating], diagonal: float = 1.0) -> Float64:
    """(..., R, R) symmetric matrices from (..., R (R - 1) / 2) features."""
    regions = round((1 + np.sqrt(1 + 8 * features.shape[-1])) / 2)
    rows, columns = np.triu_indices(regions, 1)
    matrices = np.zeros((*features.shape[:-1], regions, regions))
    matrices[..., rows, columns] = features
    matrices[..., columns, rows] = features
    matrices[..., np.arange(regions), np.arange(regions)] = diagonal
    return matrices


def _mean_over_runs(
    runs: Sequence[Float32], settings: FeatureSettings, upper: tuple[NDArray[np.intp], NDArray[np.intp]]
) -> Float64:
    """Mean of one subject's connections over the runs in which both regions have a signal, else 0.

    The mean is arithmetic, of r or of its transform z; runs of all lengths have equal weights.
    """
    total, known = np.zeros(len(upper[0])), np.zeros(len(upper[0]))
    for run in runs:
        values = _matrix(run, settings)[upper]
        if settings.fisher_z:
            values = np.arctanh(np.clip(values, -LARGEST_CORRELATION, LARGEST_CORRELATION))
        varying = varying_regions(run)
        total += values
        known += varying[upper[0]] & varying[upper[1]]
    return np.asarray(total / np.maximum(known, 1))


def _matrix(series: Float32, settings: FeatureSettings) -> Float64:
    """(R, R) connectivity of one subject, 0 at regions without signal."""
    if settings.connectivity == "pearson":
        measure = ConnectivityMeasure(EmpiricalCovariance(store_precision=False), "correlation", standardize=False)
    else:
        measure = ConnectivityMeasure(LedoitWolf(store_precision=False), "partial correlation", standardize=False)
    present = np.flatnonzero(varying_regions(series))
    matrix = np.zeros((series.shape[1], series.shape[1]))
    if len(present):
        matrix[np.ix_(present, present)] = measure.fit_transform([standardised(series)[:, present]])[0]
    return matrix
