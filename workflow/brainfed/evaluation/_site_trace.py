"""Prediction of the site from the embedding that a graph is built on: success means scanner effects in the similarity.

Multinomial logistic regression, cross-validated over subjects; chance is the accuracy of always predicting the largest
site.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

FEWEST = 5
"""Smallest number of subjects of a site, one for every fold; smaller sites are left out."""
SEED = 0


@dataclass(frozen=True)
class SiteTrace:
    """Accuracy of the site predicted from an embedding; NaN if fewer than two sites remain.

    Attributes:
        accuracy: share of subjects with a correctly predicted site, each by a model not trained on the subject.
        chance: share of the largest site.
        left_out: sites with fewer than `FEWEST` subjects.
    """

    accuracy: float
    chance: float
    subjects: int
    sites: int
    left_out: int


def site_trace(embedding: NDArray[np.float32] | NDArray[np.float64], site: NDArray[np.int64]) -> SiteTrace:
    """Predict the sites of subjects (n,), code -1 for unknown ones, which are left out, from an embedding (n, d)."""
    counts = np.bincount(site[site >= 0])
    classes = np.flatnonzero(counts >= FEWEST)
    left_out = int((counts > 0).sum()) - len(classes)
    kept = np.isin(site, classes)
    if len(classes) < 2:
        return SiteTrace(np.nan, np.nan, int(kept.sum()), len(classes), left_out)
    rows = embedding[kept].astype(np.float64)
    model = LogisticRegression(max_iter=1000)
    folds = StratifiedKFold(FEWEST, shuffle=True, random_state=SEED)
    predicted = cross_val_predict(model, rows / (rows.std() or 1.0), site[kept], cv=folds)
    chance = float(counts[classes].max() / counts[classes].sum())
    return SiteTrace(float((predicted == site[kept]).mean()), chance, int(kept.sum()), len(classes), left_out)
