"""Similarity of subjects (FedNI Sec. III-A): A = S o S~, imaging times phenotype.

S_ij = exp(-d_ij^2 / (2 sigma^2)) with d_ij = |h_i - h_j| or the correlation distance, and sigma its mean over pairs (or
a multiple of it). S~_ij is the number of phenotypes in which i and j agree. Blocks hold at most `BLOCK_ENTRIES`
numbers; the search among many subjects (`neighbours.probable`) also holds the probable pairs of `TILE_ROWS` subjects.
That search uses Euclidean distances. For correlations, blocks cover all pairs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.distances import comparable, distances, squared_distances
from brainfed.graphs.neighbours.products import MANY, FloatMatrix, mean_distance_by_products
from brainfed.graphs.settings import Distance

BLOCK_ENTRIES = 1 << 22

Values = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Nodes:
    """Subjects of a graph.

    Attributes:
        embedding: (n, d_h), comparable in the distance.
        phenotypes: compared ones, (n,) each: `sex` and `site` as codes (-1 unknown), `age` in
            years (NaN unknown).
        distance: distance of embeddings.
    """

    embedding: FloatMatrix
    phenotypes: Mapping[str, Values]
    distance: Distance = "euclidean"

    @classmethod
    def of(cls, embedding: FloatMatrix, phenotypes: Mapping[str, Values], distance: Distance) -> "Nodes":
        """Subjects with the embedding (n, d_h), prepared for the distance."""
        return cls(comparable(embedding, distance), phenotypes, distance)

    def __len__(self) -> int:
        return len(self.embedding)

    def take(self, positions: NDArray[np.int64] | slice) -> "Nodes":
        """Nodes at `positions`."""
        chosen = {name: values[positions] for name, values in self.phenotypes.items()}
        return Nodes(self.embedding[positions], chosen, self.distance)


def row_blocks(rows: int, columns: int, entries: int) -> Iterator[slice]:
    """Slices of consecutive rows whose (rows, columns) block holds at most `entries` numbers, or one row."""
    height = max(1, entries // max(1, columns))
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def mean_pairwise_distance(
    embedding: FloatMatrix, entries: int = BLOCK_ENTRIES, distance: Distance = "euclidean"
) -> float:
    """Mean distance over all pairs of rows; 0 without a pair."""
    count = len(embedding)
    if count < 2:
        return 0.0
    if count > MANY and distance == "euclidean":
        return mean_distance_by_products(embedding)
    rows, total = comparable(embedding, distance), 0.0
    for block in row_blocks(count, count, entries):
        found = distances(rows[block], rows, distance)
        # A subject is no pair with itself; every unordered pair counts twice.
        found[np.arange(len(found)), np.arange(block.start, block.stop)] = 0
        total += float(found.sum())
    return total / (count * (count - 1))


def imaging_similarity(
    rows: FloatMatrix, columns: FloatMatrix, sigma: float, distance: Distance = "euclidean"
) -> FloatMatrix:
    """FedNI eq. 1: s_ij = exp(-|h_i - h_j|^2 / (2 sigma^2)) of comparable rows (a, d_h) and columns (b, d_h).

    With sigma = 0 its limit: 1 at the distance 0, else 0.
    """
    squared = squared_distances(rows, columns, distance)
    if sigma == 0:
        return np.asarray(squared == 0, dtype=np.float64)
    return np.asarray(np.exp(-squared / (2 * sigma**2)), dtype=np.float64)


def phenotype_similarity(rows: Nodes, columns: Nodes, age_gap: float) -> FloatMatrix:
    """FedNI eq. 2: s~_ij = sum over q of f_q(u_i, u_j), the number of agreeing phenotypes of rows (a) and columns (b).

    1 everywhere if no phenotype is compared.
    """
    if not rows.phenotypes:
        return np.ones((len(rows), len(columns)))
    agreeing = np.zeros((len(rows), len(columns)))
    for name, values in rows.phenotypes.items():
        agreeing += _agree(name, values[:, None], columns.phenotypes[name][None, :], age_gap)
    return agreeing


def _agree(name: str, left: Values, right: Values, age_gap: float) -> NDArray[np.bool_]:
    return np.asarray(np.abs(left - right) <= age_gap if name == "age" else (left == right) & (left >= 0))


def similarity(rows: Nodes, columns: Nodes, sigma: float, age_gap: float) -> FloatMatrix:
    """FedNI Sec. III-A: A = S o S~ of rows (a) against columns (b)."""
    imaging = imaging_similarity(rows.embedding, columns.embedding, sigma, rows.distance)
    return imaging * phenotype_similarity(rows, columns, age_gap)


def paired_similarity(left: Nodes, right: Nodes, sigma: float, age_gap: float) -> FloatMatrix:
    """A (n,) of node i of `left` with node i of `right`, bitwise equal to `similarity`.

    Distances are Euclidean, sigma is positive.
    """
    squared = np.zeros(len(left))
    for dimension in range(left.embedding.shape[1]):
        squared += np.square(left.embedding[:, dimension] - right.embedding[:, dimension])
    agreeing = np.zeros(len(left)) if left.phenotypes else np.ones(len(left))
    for name, values in left.phenotypes.items():
        agreeing += _agree(name, values, right.phenotypes[name], age_gap)
    return np.asarray(np.exp(-squared / (2 * sigma**2)) * agreeing)
