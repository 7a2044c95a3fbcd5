"""Odd and copied scans, found by comparing connectivity between subjects.

The comparison is label-free: it reads no diagnosis.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse.csgraph import connected_components

from brainfed.imaging._connectivity import connectivity
from brainfed.imaging._settings import FeatureSettings
from brainfed.imaging.series import split_runs, varying_regions
from brainfed.runtime import BoolArray, Float32, Float64

FEWEST_SUBJECTS = 10
"""Fewest subjects of a judgement of likeness."""
FEWEST_REGIONS = 10
"""Fewest regions of a comparison; the connectivity of fewer may agree by chance."""
FEWEST_CONNECTIONS = FEWEST_REGIONS * (FEWEST_REGIONS - 1) // 2
"""Connections between these regions; subjects that share fewer are not compared."""
MAD_TO_SD = 0.6745
"""Median absolute deviation of a standard normal variable (Iglewicz & Hoaglin 1993)."""


def defined_connectivity(
    series: Mapping[str, Float32], runs: Mapping[str, Sequence[int]] | None = None, *, fisher_z: bool = False
) -> Float32:
    """(n, R (R - 1) / 2) Pearson connectivity in ascending order of subject; NaN without a run with signal in both.

    `runs` holds the lengths of runs for connectivity that is the mean over runs.
    """
    features = connectivity(series, FeatureSettings("pearson", fisher_z=fisher_z), runs)
    for row, subject in enumerate(sorted(series)):
        varies = np.array([varying_regions(run) for run in split_runs(series[subject], (runs or {}).get(subject, ()))])
        if not varies.any(axis=0).all() or len(varies) > 1:
            first, second = np.triu_indices(varies.shape[1], 1)
            features[row, ~(varies[:, first] & varies[:, second]).any(axis=0)] = np.nan
    return features


def typicality(
    series: Mapping[str, Float32], alike: float, runs: Mapping[str, Sequence[int]] | None = None
) -> pd.DataFrame:
    """Compare every subject's connectivity with the others'.

    Args:
        series: subject -> (time, R).
        alike: correlation above which the connectivity of two subjects is nearly equal.
        runs: subject -> lengths of its runs, for connectivity that is the mean over runs.

    Returns:
        subject, mean_fc (mean correlation), typicality (correlation of its connections with their means over the
        others), typicality_z (its Fisher z in median absolute deviations from the median, scaled as standard
        deviations), alike (first subject with nearly equal connectivity, directly or through others, or the subject
        itself); NaN and the subject itself for too few subjects or regions.
    """
    subjects = sorted(series)
    table = pd.DataFrame({"subject": pd.Series(subjects, dtype="str")})
    table[["mean_fc", "typicality", "typicality_z"]] = np.nan
    table["alike"] = table["subject"]
    if not subjects:
        return table
    features = defined_connectivity(series, runs)
    defined = [row[~np.isnan(row)] for row in features]
    table["mean_fc"] = [float(row.mean(dtype=np.float64)) if len(row) else float("nan") for row in defined]
    if next(iter(series.values())).shape[1] < FEWEST_REGIONS:
        return table
    # The first subject of each group of subjects that correlate above `alike`, directly or through others.
    _, group = connected_components(_correlations(features) > alike, directed=False)
    _, first, member = np.unique(group, return_index=True, return_inverse=True)
    table["alike"] = [subjects[row] for row in first[member]]
    if len(subjects) >= FEWEST_SUBJECTS:
        table["typicality"] = _likeness(features)
        table["typicality_z"] = robust_z(np.arctanh(np.clip(table["typicality"].to_numpy(), -0.999999, 0.999999)))
    return table


def robust_z(values: Float64) -> Float64:
    """(n,) distance from the median in scaled median absolute deviations; NaN without spread."""
    if np.isnan(values).all():
        return np.full(len(values), np.nan)
    off = values - np.nanmedian(values)
    spread = np.nanmedian(np.abs(off))
    return np.asarray(MAD_TO_SD * off / spread) if spread > 0 else np.full(len(values), np.nan)


def _likeness(features: Float32) -> Float64:
    """(n,) correlation of each row's defined values with their means over the other rows."""
    total: Float64 = np.nansum(features, axis=0, dtype=np.float64)
    count = np.sum(~np.isnan(features), axis=0)
    result = np.full(len(features), np.nan)
    for row, own in enumerate(features):
        known = ~np.isnan(own) & (count > 1)
        others = (total[known] - own[known]) / (count[known] - 1)
        if known.sum() >= FEWEST_CONNECTIONS and np.ptp(own[known]) > 0 and np.ptp(others) > 0:
            result[row] = np.corrcoef(own[known], others)[0, 1]
    return result


def _correlations(features: Float32) -> Float32:
    """(n, n) correlations of the rows over the connections defined in both, 0 for too few of these."""
    defined = ~np.isnan(features)
    mean = np.nansum(features, axis=1, keepdims=True) / np.maximum(defined.sum(axis=1, keepdims=True), 1)
    filled = np.where(defined, features - mean, 0).astype(np.float32)
    if defined.all():
        length = np.linalg.norm(filled, axis=1, keepdims=True)
        unit = np.divide(filled, length, out=np.zeros_like(filled), where=length > 0)
        return np.asarray(unit @ unit.T)
    weights = defined.astype(np.float32)
    shared = weights @ weights.T
    total, squares = filled @ weights.T, filled**2 @ weights.T
    count = np.maximum(shared, 1)
    covariance = filled @ filled.T - total * total.T / count
    variance = np.maximum(squares - total**2 / count, 0)
    scale = np.sqrt(variance * variance.T)
    known = (shared >= FEWEST_CONNECTIONS) & (scale > 0)
    return np.asarray(np.divide(covariance, scale, out=np.zeros_like(covariance), where=known))


# QC-FC: correlation of connectivity with motion over subjects (Satterthwaite 2012; Ciric 2017).
#
# It is label-free. Within sites, connectivity and motion are deviations from the site's means, so that differences
# between scanners do not appear as motion.

COLUMNS = ("r", "p", "within_r", "within_p")
BLOCK = 2000
"""Connections in one block."""


def relate_motion(
    series: Mapping[str, Float32],
    regions: Sequence[str],
    moved: pd.DataFrame,
    runs: Mapping[str, Sequence[int]] | None = None,
) -> pd.DataFrame:
    """Correlate every connection with motion.

    Args:
        series: subject -> (time, R).
        moved: subject, mean_fd (mm, without NaN), site; the same subjects in ascending order.
        runs: subject -> lengths of its runs, for connectivity that is the mean over runs.

    Returns:
        One row a connection in `np.triu_indices(R, 1)` order: from, to (regions) and the columns of `qc_fc`. Empty
        for fewer than ten subjects or equal motion of all.
    """
    first, second = np.triu_indices(len(regions), 1)
    names = np.asarray(regions, dtype=object)
    ends = pd.DataFrame({"from": names[first], "to": names[second]})
    if len(moved) < FEWEST_SUBJECTS or moved["mean_fd"].nunique() < 2:
        return ends.iloc[:0].astype("str").assign(**dict.fromkeys(COLUMNS, np.empty(0)))
    features = defined_connectivity(series, runs, fisher_z=True)
    correlated = qc_fc(features, moved["mean_fd"].to_numpy(), moved["site"].to_numpy(dtype=object))
    return pd.concat([ends.astype("str"), correlated], axis=1)


def qc_fc(features: Float32, mean_fd: Float64, site: NDArray[np.object_]) -> pd.DataFrame:
    """Correlate every connection with motion.

    Args:
        features: (n, d) Fisher-z connectivity, NaN where undefined.
        mean_fd: (n,) mean framewise displacement in mm, without NaN.
        site: (n,) names.

    Returns:
        One row a connection: r, p (two-sided), within_r, within_p (of deviations from the site's mean); NaN for
        fewer than three subjects or without variation.
    """
    _, code = np.unique(site.astype(str), return_inverse=True)
    by_site = np.eye(code.max() + 1)[code]
    one_group = np.ones((len(mean_fd), 1))
    parts = []
    for start in range(0, features.shape[1], BLOCK):
        values = features[:, start : start + BLOCK].astype(np.float64)
        r, p = _motion_correlations(values, mean_fd, one_group)
        within_r, within_p = _motion_correlations(values, mean_fd, by_site)
        parts.append(pd.DataFrame(dict(zip(COLUMNS, (r, p, within_r, within_p), strict=True))))
    return pd.concat(parts, ignore_index=True)


def _motion_correlations(values: Float64, motion: Float64, groups: Float64) -> tuple[Float64, Float64]:
    """(b,) correlations of (n, b) values with (n,) motion, both minus the means of (n, k) indicated groups; their p."""
    known = ~np.isnan(values)
    size = groups.T @ known
    x = _centred(np.where(known, values, 0.0), known, groups, size)
    y = _centred(np.where(known, motion[:, None], 0.0), known, groups, size)
    spread = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    freedom = known.sum(axis=0) - 1 - (size > 0).sum(axis=0)
    defined = (freedom > 0) & (spread > 1e-12)
    r = np.divide((x * y).sum(axis=0), spread, out=np.full(len(spread), np.nan), where=defined)
    r = np.clip(r, -1, 1)
    with np.errstate(divide="ignore"):
        t = np.abs(r) * np.sqrt(np.maximum(freedom, 1) / (1 - r**2))
    return r, np.where(defined, 2 * stats.t.sf(t, np.maximum(freedom, 1)), np.nan)


def _centred(values: Float64, known: BoolArray, groups: Float64, size: Float64) -> Float64:
    means = (groups.T @ values) / np.maximum(size, 1)
    return np.where(known, values - groups @ means, 0.0)
