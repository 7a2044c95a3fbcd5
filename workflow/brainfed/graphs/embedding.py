"""The low-dimensional H of FedNI Sec. III-A: principal components of the imaging features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

EXACT_RANK = 1500
"""Up to this many rows or columns the decomposition is exact, beyond it randomised (Halko et al. 2011)."""

FloatArray = NDArray[np.float32] | NDArray[np.float64]


@dataclass(frozen=True)
class Projection:
    """A fitted projection: mean (d,) and components (d_h, d)."""

    mean: FloatArray
    components: FloatArray

    def __call__(self, features: FloatArray) -> NDArray[np.float64]:
        """Features (n, d) -> embedding (n, d_h)."""
        return np.asarray(features @ self.components.T - self.mean @ self.components.T, dtype=np.float64)


def fit_projection(features: FloatArray, dimensions: int) -> Projection:
    """Fit min(dimensions, n - 1, d) principal components to features (n, d), the same ones every time.

    No component at all where n < 2 or all subjects are equal: there is nothing to tell them apart by.
    """
    subjects, columns = features.shape
    width = min(dimensions, subjects - 1, columns)
    if width < 1 or not np.ptp(features, axis=0).any():
        return Projection(np.zeros(columns), np.zeros((0, columns)))
    if min(subjects, columns) <= EXACT_RANK:
        pca = PCA(width, svd_solver="full").fit(features.astype(np.float64))
    else:
        pca = PCA(width, svd_solver="randomized", random_state=0).fit(features)
    return Projection(pca.mean_, pca.components_)
