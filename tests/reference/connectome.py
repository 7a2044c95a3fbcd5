"""A connectome as a graph from its definition: one subject, one connection after the other."""

import math

import numpy as np


def matrix(features, regions, tangent=False):
    """(R, R) matrix of one row of features; 1 on the diagonal of correlations, tangent vectors without sqrt(2)."""
    square = np.eye(regions, dtype=np.float32)
    column = 0
    for i in range(regions):
        for j in range(i if tangent else i + 1, regions):
            entry = features[column] / math.sqrt(2) if tangent and i != j else features[column]
            square[i, j] = square[j, i] = entry
            column += 1
    return square


def graph(square, edges, density, threshold):
    """Nodes, and the edges (source, target) -> weight, of one matrix."""
    regions = len(square)
    pairs = [(i, j) for i in range(regions) for j in range(i + 1, regions) if square[i, j] != 0]
    if edges == "absolute":
        kept = [(i, j) for i, j in pairs if abs(square[i, j]) >= threshold]
    else:
        connections = regions * (regions - 1) / 2
        pairs.sort(key=lambda pair: (-abs(square[pair]), pair))
        kept = pairs[: max(1, math.floor(density * connections + 0.5))]
    return square, {(a, b): square[a, b] for i, j in kept for a, b in ((i, j), (j, i))}
