"""Partitions of institutions, and two ways to cut a cluster in two."""

from collections.abc import Callable, Mapping
from typing import Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import spectral_embedding

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Clustering = Literal["minimum_cut", "balanced"]
Cut = Callable[[FloatArray], BoolArray]
"""Weights (m, m) of the complete graph over a cluster -> (m,) whether an institution is in the one part or the other.
Weights are not negative and symmetric; the diagonal does not count."""

LEAST = 1e-9
"""Weight, as a share of the largest, that joins every pair before the normalised cut, which wants a connected graph."""


def minimum_cut(weights: FloatArray) -> BoolArray:
    """The cut whose weights have the smallest sum (Stoer and Wagner 1997), as GCFL cuts.

    Between parts of k and m - k institutions lie k (m - k) pairs, so near-equal weights cut off a single institution.
    """
    graph = nx.complete_graph(len(weights))
    for one, other, edge in graph.edges(data=True):
        edge["weight"] = float(weights[one, other])
    _, (part, _) = nx.stoer_wagner(graph)
    return np.isin(np.arange(len(weights)), part)


def balanced(weights: FloatArray) -> BoolArray:
    """The normalised cut, which prefers parts of like weight.

    The parts are the signs of the second eigenvector of the normalised Laplacian (Shi and Malik 2000), which is
    orthogonal to a positive one: both parts have institutions.
    """
    joined = np.maximum(weights, LEAST * (weights.max() or 1.0))
    vector = spectral_embedding(joined, n_components=1, drop_first=True, random_state=0)[:, 0]
    return np.asarray(vector > 0)


CUTS: Mapping[Clustering, Cut] = {"minimum_cut": minimum_cut, "balanced": balanced}


def split(clusters: IntArray, one: IntArray, other: IntArray, counts: IntArray) -> IntArray:
    """A partition in which two parts of one cluster are apart.

    The part with the first institution keeps the cluster's number, the other gets the next free one. Members without
    training samples are in neither part: they go with the part that has more samples.

    Args:
        clusters: (M,) number of the cluster of each institution, in {0, ..., K - 1}.
        one: (a,) places of the institutions of one part, in ascending order.
        other: (b,) those of the other part; none is empty.
        counts: (M,) numbers of training samples.

    Returns:
        (M,) in {0, ..., K}.
    """
    first, second = sorted((one, other), key=lambda part: int(part[0]))
    number, free = clusters[first[0]], clusters.max() + 1
    found = clusters.copy()
    if counts[second].sum() > counts[first].sum():
        found[clusters == number] = free
    found[first], found[second] = number, free
    return found
