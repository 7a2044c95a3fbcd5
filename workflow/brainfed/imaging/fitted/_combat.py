"""ComBat (Johnson et al. 2007; Fortin et al. 2018): equal mean and variance of sites inside each institution.

With a feature's grand mean m, effects b of the covariates c and pooled deviation s, a site of shift g and variance d
has x = m + c b + s (g + sqrt(d) e), and m + c b + s e after harmonisation. Training subjects alone fit the model; a
subject is harmonised by its own values, site and covariates. neuroHarmonize fits and applies it.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from neuroHarmonize import harmonizationApply, harmonizationLearn
from numpy.typing import NDArray

from brainfed.runtime import BoolArray, Float32, Float64, IntArray

logger = logging.getLogger(__name__)

FEWEST = {True: 5, False: 10}
"""Fewest training subjects of a site, with and without empirical Bayes: the scale of fewer is mostly chance."""

SMALLEST_VARIANCE = 1e-7
"""Least variance of a site, in units of the pooled one; below it float32 sees no variation, and the scale stays."""


@dataclass(frozen=True)
class Harmonised:
    """Features without site effects.

    Attributes:
        features: (n, d).
        sites: institution -> its harmonised sites; empty if its subjects are unchanged.
    """

    features: Float32
    sites: dict[str, list[str]]


def harmonised(
    features: Float32,
    site: Sequence[str],
    institution: Sequence[str],
    training: BoolArray,
    covariates: Mapping[str, Float64],
    *,
    bayes: bool = True,
) -> Harmonised:
    """Remove site effects inside each institution: nothing crosses.

    Unchanged are subjects of a site with fewer than `FEWEST` training subjects in the institution, features
    that do not vary in it, and institutions with fewer than two sites to compare: their shifts are unknown.

    Args:
        features: (n, d), finite.
        site: (n,) names.
        institution: (n,) names.
        training: (n,) mask of the training subjects.
        covariates: name -> (n,), NaN where unknown; their effects stay. The target is never one of them.
        bayes: shrink a site's shift and scale by empirical Bayes over features.
    """
    where, scanned = np.asarray(institution, dtype=object), np.asarray(site, dtype=object)
    changed, fitted = features.copy(), dict[str, list[str]]()
    for name in sorted(set(where)):
        members = np.flatnonzero(where == name)
        sites = _comparable(features, scanned, members[training[members]], FEWEST[bayes])
        fitted[name] = sites
        left = sorted(set(scanned[members]) - set(sites))
        if not sites:
            logger.info(
                "combat of %s: fewer than two sites with %d training subjects, its features stay as they are",
                name,
                FEWEST[bayes],
            )
            continue
        rows = members[np.isin(scanned[members], sites)]
        columns = _varying(features, scanned, rows[training[rows]])
        own = {key: values[rows] for key, values in covariates.items()}
        table = _table(np.searchsorted(sites, scanned[rows].astype(str)), own, training[rows])
        logger.info(
            "combat of %s: %d sites from %d training subjects, keeping %s; left as they are: %s",
            name,
            len(sites),
            int(training[rows].sum()),
            ", ".join(table.columns[1:]) or "no covariate",
            ", ".join(left) or "none",
        )
        block = np.ix_(rows, columns)
        changed[block] = _combat(features[block].astype(np.float64), table, training[rows], bayes=bayes)
    return Harmonised(changed, fitted)


def _combat(values: Float64, table: pd.DataFrame, training: BoolArray, *, bayes: bool) -> Float64:
    """Harmonise the rows of `values` (n, d) by a model of the training rows, which hold all sites."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model, _ = harmonizationLearn(values[training], table[training].reset_index(drop=True), eb=bayes)
    variance = np.asarray(model["delta_star"])
    model["delta_star"] = np.where(variance < SMALLEST_VARIANCE, 1.0, variance)
    return np.asarray(harmonizationApply(values, table, model))


def _comparable(features: Float32, site: NDArray[np.object_], known: IntArray, fewest: int) -> list[str]:
    """Sites with enough different training subjects, in ascending order; empty for fewer than two."""
    names = [
        str(name)
        for name in sorted(set(site[known]))
        if (site[known] == name).sum() >= fewest and np.ptp(features[known[site[known] == name]], axis=0).any()
    ]
    return names if len(names) > 1 else []


def _varying(features: Float32, site: NDArray[np.object_], known: IntArray) -> IntArray:
    """Features that vary between training subjects of one site; the others have no known variance."""
    spread = [np.ptp(features[known[site[known] == name]], axis=0) > 0 for name in sorted(set(site[known]))]
    return np.flatnonzero(np.any(spread, axis=0))


def _table(site: IntArray, covariates: Mapping[str, Float64], training: BoolArray) -> pd.DataFrame:
    """SITE and the covariates as deviations from the training mean, 0 where unknown.

    Covariates are left out if sites and earlier covariates determine them, or training subjects are too few.
    """
    kept = {"SITE": site}
    design = (site[:, None] == np.unique(site)).astype(np.float64)
    for name, values in covariates.items():
        known = values[training & np.isfinite(values)]
        if not len(known):
            continue
        scaled = np.nan_to_num((values - known.mean()) / (known.std() or 1.0))
        wider = np.column_stack([design, scaled])
        if training.sum() > wider.shape[1] == np.linalg.matrix_rank(wider[training]):
            kept[name], design = scaled, wider
    return pd.DataFrame(kept)
