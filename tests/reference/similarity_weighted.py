"""Similarity-weighted aggregation for one fold from the formula (FGLBC eq. 6): lists of vectors, no products shared."""

from math import exp, sqrt

import numpy as np


def components_of(vectors, count):
    """Scores of vectors on `count` principal components (None: all), by singular value decomposition."""
    _, _, directions = np.linalg.svd(np.array(vectors), full_matrices=False)
    return [directions[:count] @ vector for vector in vectors]


def clipped_cosine(one, other):
    lengths = sqrt(sum(one**2)) * sqrt(sum(other**2))
    return max(float(sum(one * other)) / lengths, 0.0) if lengths else 0.0


def alphas(similarities, tau):
    powers = [exp(tau * similarity) for similarity in similarities]
    return [power / sum(powers) for power in powers]


def aggregate(weights, sent, previous, tau, components=None, *, literal=False):
    """The new global weights, and alpha of each institution.

    Args:
        weights: vectors of the institutions with training samples.
        sent, previous: global weights of this round and of the one before.
    """
    if literal:
        vectors = [*weights, sent]
        mean = sum(vectors) / len(vectors)
        vectors = [vector - mean for vector in vectors]
    else:
        vectors = [*(vector - sent for vector in weights), sent - previous]
    *scores, own = components_of(vectors, components)
    found = alphas([clipped_cosine(score, own) for score in scores], tau)
    moved = sum(alpha * (vector if literal else vector - sent) for alpha, vector in zip(found, weights, strict=True))
    return sent + moved, found
