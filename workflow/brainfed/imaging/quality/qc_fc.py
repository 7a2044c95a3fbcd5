"""QC-FC: correlation of connectivity with motion over subjects (Satterthwaite 2012; Ciric 2017).

It is label-free. Within sites, connectivity and motion are deviations from the site's means, so that differences
between scanners do not appear as motion.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from brainfed.imaging.quality.typicality import defined_connectivity
from brainfed.runtime.arrays import BoolArray, Float32, Float64

COLUMNS = ("r", "p", "within_r", "within_p")
BLOCK = 2000
"""Connections in one block."""
FEWEST_SUBJECTS = 10
"""Fewest subjects of a correlation."""


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
        r, p = _correlations(values, mean_fd, one_group)
        within_r, within_p = _correlations(values, mean_fd, by_site)
        parts.append(pd.DataFrame(dict(zip(COLUMNS, (r, p, within_r, within_p), strict=True))))
    return pd.concat(parts, ignore_index=True)


def _correlations(values: Float64, motion: Float64, groups: Float64) -> tuple[Float64, Float64]:
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
