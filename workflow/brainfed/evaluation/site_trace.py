"""Can the site be told from what the graph is built on (the embedding)? Then similarity is partly the scanner.

Multinomial logistic regression, cross-validated over subjects; chance is what naming the largest site would score.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

FEWEST = 5
"""Subjects that a site needs, so that every fold can hold one; smaller sites are left out."""
SEED = 0


@dataclass(frozen=True)
class SiteTrace:
    """How well the site is told from an embedding; NaN where fewer than two sites remain.

    Attributes:
        accuracy: share of subjects whose site is told right, each by a model that did not see it.
        chance: share of the largest site.
        subjects: number of subjects that were told.
        sites: number of sites among them.
        left_out: sites with fewer than `FEWEST` subjects.
    """

    accuracy: float
    chance: float
    subjects: int
    sites: int
    left_out: int


def site_trace(embedding: NDArray[np.float32] | NDArray[np.float64], site: NDArray[np.int64]) -> SiteTrace:
    """Tell sites from an embedding.

    Args:
        embedding: (n, d), finite.
        site: (n,) codes, -1 unknown: such subjects do not count.
    """
    counts = np.bincount(site[site >= 0])
    told = np.flatnonzero(counts >= FEWEST)
    left_out = int((counts > 0).sum()) - len(told)
    kept = np.isin(site, told)
    if len(told) < 2:
        return SiteTrace(np.nan, np.nan, int(kept.sum()), len(told), left_out)
    told_from = embedding[kept].astype(np.float64)
    model = LogisticRegression(max_iter=1000)
    folds = StratifiedKFold(FEWEST, shuffle=True, random_state=SEED)
    found = cross_val_predict(model, told_from / (told_from.std() or 1.0), site[kept], cv=folds)
    chance = float(counts[told].max() / counts[told].sum())
    return SiteTrace(float((found == site[kept]).mean()), chance, int(kept.sum()), len(told), left_out)
