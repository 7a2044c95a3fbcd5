"""Haufe's pattern from the covariance of all features, as the formula has it."""

import numpy as np


def dense_pattern(features, weights):
    """A = cov(X) w / var(X w) (Haufe et al. 2014, eq. 6), w scaled so that the score X w has variance 1.

    Args:
        features: (n, d) of the training subjects.
        weights: (d,).
    """
    covariance = np.cov(features, rowvar=False, ddof=0)
    weights = weights / np.sqrt(weights @ covariance @ weights)
    return covariance @ weights / (weights @ covariance @ weights)
