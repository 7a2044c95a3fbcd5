"""ComBat (Johnson et al. 2007; Fortin et al. 2018): sites brought to one mean and variance inside each institution.

With a feature's grand mean m, effects b of the covariates c and pooled deviation s, a site of shift g and variance d
has x = m + c b + s (g + sqrt(d) e); what remains is m + c b + s e. All of it comes from training subjects, and a
subject is then harmonised by its own values, site and covariates alone. Fitting and applying are neuroHarmonize's.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from neuroHarmonize import harmonizationApply, harmonizationLearn
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

FEWEST = {True: 5, False: 10}
"""Training subjects that a site needs, with and without empirical Bayes: of fewer, its scale is mostly chance."""

SMALLEST_VARIANCE = 1e-7
"""Of a site, in units of the pooled one; below it nothing varied there that float32 could tell, and the scale stays."""

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Harmonised:
    """Features without site effects.

    Attributes:
        features: (n, d).
        sites: institution -> the sites that were harmonised in it, none where all its subjects stay as they are.
    """

    features: Float32
    sites: dict[str, list[str]]


def harmonised(
    features: Float32,
    site: Sequence[str],
    institution: Sequence[str],
    training: NDArray[np.bool_],
    covariates: Mapping[str, Float64],
    *,
    bayes: bool = True,
) -> Harmonised:
    """Remove site effects, each institution by itself: nothing crosses.

    Subjects of a site with fewer than `FEWEST` training subjects in the institution, and features that do not
    vary in it, stay as they are: no shift is known there. So does an institution with fewer than two sites
    to compare.

    Args:
        features: (n, d), finite.
        site: (n,) names.
        institution: (n,) names.
        training: (n,) mask of the subjects that may be fitted on.
        covariates: name -> (n,) whose effects stay, NaN where unknown; never what is to be predicted.
        bayes: shrink a site's shift and scale by empirical Bayes over features.
    """
    where, scanned = np.asarray(institution, dtype=object), np.asarray(site, dtype=object)
    found, fitted = features.copy(), dict[str, list[str]]()
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
        found[block] = _combat(features[block].astype(np.float64), table, training[rows], bayes=bayes)
    return Harmonised(found, fitted)


def _combat(values: Float64, table: pd.DataFrame, training: NDArray[np.bool_], *, bayes: bool) -> Float64:
    """The rows of `values` (n, d) harmonised by a model of its training rows; all sites are among these."""
    with np.errstate(divide="ignore", invalid="ignore"):
        model, _ = harmonizationLearn(values[training], table[training].reset_index(drop=True), eb=bayes)
    variance = np.asarray(model["delta_star"])
    model["delta_star"] = np.where(variance < SMALLEST_VARIANCE, 1.0, variance)
    return np.asarray(harmonizationApply(values, table, model))


def _comparable(features: Float32, site: NDArray[np.object_], known: IntArray, fewest: int) -> list[str]:
    """Sites with enough training subjects that differ, in ascending order; none unless there are two."""
    names = [
        str(name)
        for name in sorted(set(site[known]))
        if (site[known] == name).sum() >= fewest and np.ptp(features[known[site[known] == name]], axis=0).any()
    ]
    return names if len(names) > 1 else []


def _varying(features: Float32, site: NDArray[np.object_], known: IntArray) -> IntArray:
    """Features that vary between training subjects of one site: of the others no variance is known."""
    spread = [np.ptp(features[known[site[known] == name]], axis=0) > 0 for name in sorted(set(site[known]))]
    return np.flatnonzero(np.any(spread, axis=0))


def _table(site: IntArray, covariates: Mapping[str, Float64], training: NDArray[np.bool_]) -> pd.DataFrame:
    """SITE and the covariates as deviations from the training mean, 0 where unknown.

    Left out are those that sites and earlier covariates determine, or that training subjects are too few for.
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
