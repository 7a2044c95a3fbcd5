"""Low-dimensional H of FedNI Sec. III-A by recursive feature elimination (Parisot et al. 2018, Sec. 2.3)."""

import numpy as np

from brainfed.graphs.population.embedding import FloatArray, Projection
from brainfed.imaging.fitted.rfe import FloatMatrix, IntArray, both_classes, elimination_ranks


def selected_features(features: FloatMatrix, labels: IntArray, dimensions: int) -> IntArray:
    """Select the min(dimensions, d) features, ascending, that elimination on labelled subjects keeps.

    The result is empty if the labels lack a class, as at a site that is left out.

    Args:
        features: (n, d) of the training subjects.
        labels: (n,) in {0, 1}; -1: the label must not be used.
        dimensions: dimensions of the embedding.
    """
    if not both_classes(labels):
        return np.zeros(0, dtype=np.int64)
    labelled = labels >= 0
    return np.flatnonzero(elimination_ranks(features[labelled], labels[labelled]) < dimensions)


def selecting_projection(features: FloatArray, selected: IntArray) -> Projection:
    """Projection to the features `selected` (d_h,), z-scored by all n rows of `features` (n, d), without labels."""
    varying = np.ptp(features[:, selected], axis=0) > 0
    deviation = np.where(varying, features[:, selected].std(axis=0, dtype=np.float64), 1.0)
    components = np.zeros((len(selected), features.shape[1]))
    components[np.arange(len(selected)), selected] = 1 / deviation
    return Projection(features.mean(axis=0, dtype=np.float64), components)
