"""Connectomes as graphs: rows of features as square matrices, and their strongest connections as edges."""

import math

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.connectome.settings import ConnectomeSettings

Float32 = NDArray[np.float32]
Mask = NDArray[np.bool_]

DIAGONAL = 1.0
"""Diagonal of correlations, also of transformed ones, where artanh(1) is infinite."""


def connections(features: Float32, regions: int, *, tangent: bool = False) -> Float32:
    """(n, C) entries of the C = R (R - 1) / 2 connections, in `np.triu_indices(R, 1)` order.

    Args:
        features: (n, C); tangent vectors (n, C + R) with the diagonal, whose connections are multiplied by sqrt(2).
        regions: R.
        tangent: whether the features are tangent vectors.
    """
    if not tangent:
        return features
    rows, columns = np.triu_indices(regions)
    return features[:, rows != columns] / math.sqrt(2)


def matrices(features: Float32, regions: int, *, tangent: bool = False) -> Float32:
    """(n, R, R) symmetric matrices of rows of features; arguments as of `connections`."""
    square = np.full((len(features), regions, regions), DIAGONAL, dtype=np.float32)
    rows, columns = np.triu_indices(regions, 1)
    entries = connections(features, regions, tangent=tangent)
    square[:, rows, columns] = entries
    square[:, columns, rows] = entries
    if tangent:
        place = np.arange(regions)
        first = place * regions - place * (place - 1) // 2
        square[:, place, place] = features[:, first]
    return square


def strongest(entries: Float32, regions: int, settings: ConnectomeSettings) -> Mask:
    """(n, C) mask of the connections (n, C) that are edges: the largest by absolute value, none of them 0."""
    strength = np.abs(entries)
    if settings.edges == "absolute":
        return (strength >= settings.threshold) & (strength > 0)
    kept = settings.most_connections(regions)
    if kept in (0, entries.shape[1]):
        return strength > 0
    least = np.partition(strength, -kept, axis=1)[:, -kept, None]
    above, equal = strength > least, strength == least
    room = kept - above.sum(axis=1, keepdims=True)
    return np.asarray((above | (equal & (np.cumsum(equal, axis=1) <= room))) & (strength > 0))


def adjacency(edges: Mask, regions: int) -> Mask:
    """(n, R, R) symmetric masks without self-loops of the masks (n, C) of connections."""
    square = np.zeros((len(edges), regions, regions), dtype=np.bool_)
    rows, columns = np.triu_indices(regions, 1)
    square[:, rows, columns] = edges
    square[:, columns, rows] = edges
    return square
