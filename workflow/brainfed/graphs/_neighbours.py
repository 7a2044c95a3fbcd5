"""The most similar subjects: A = S o S~, imaging times phenotype (FedNI Sec. III-A), for few and for many subjects."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from brainfed.graphs._settings import Distance
from brainfed.runtime import BoolArray, Float32, Float64, IntArray

# Squared distances of many subjects by one matrix product: |a - b|^2 = |a|^2 - 2 a.b + |b|^2.

Values = IntArray | Float64

MANY = 5000
"""Largest number of subjects for distances by pair; matrix products compute those of more subjects."""
TILE_ROWS, TILE_COLUMNS = 512, 4096
"""Pairs of one block, which fits into the cache."""


def factors(rows: Float64, columns: Float64, dtype: type[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Matrices (a, d_h + 2) and (d_h + 2, b) whose product is the squared distances of rows (a, d_h) and columns."""
    rows_squared, columns_squared = (np.square(points).sum(axis=1)[:, None] for points in (rows, columns))
    left = np.hstack([-2 * rows, rows_squared, np.ones_like(rows_squared)])
    right = np.hstack([columns, np.ones_like(columns_squared), columns_squared])
    return left.astype(dtype), np.ascontiguousarray(right.T, dtype=dtype)


def rounding_of_products(points: Float64) -> Float64:
    """(n,) twice the part of each point in the error of squared distances in float32 (Higham 2002, Sec. 3.1).

    The error grows with (|a| + |b|)^2, which is at most 2 |a|^2 + 2 |b|^2: the sum of both points' parts.
    """
    squared = np.square(points).sum(axis=1)
    return np.asarray(2 * (points.shape[1] + 8) * np.finfo(np.float32).eps * squared)


def mean_distance_by_products(embedding: Float64) -> float:
    """Mean Euclidean distance over all pairs of rows (n, d_h), n >= 2."""
    centred = embedding - embedding.mean(axis=0)
    left, right = factors(centred, centred, np.float64)
    count, total = len(embedding), 0.0
    for start in range(0, count, TILE_ROWS):
        for first in range(start, count, TILE_COLUMNS):
            squared = left[start : start + TILE_ROWS] @ right[:, first : first + TILE_COLUMNS]
            if first == start:
                squared[np.tri(*squared.shape, dtype=np.bool_)] = 0
            np.maximum(squared, 0, out=squared)
            total += float(np.sqrt(squared, out=squared).sum())
    return total / (count * (count - 1) / 2)


# Distances of subjects: Euclidean, or one minus the correlation of their values (Parisot et al. 2018).
#
# The released code of Parisot et al. uses the correlation distance d = 1 - r of the selected features. Centred rows of
# length 1 have r = u.v, so d = |u - v|^2 / 2.


def comparable(embedding: Float64, distance: Distance) -> Float64:
    """Prepare rows (n, d_h) for `squared_distances`: for correlations, centre them and scale them to length 1.

    A row without variation, which correlates with no other, becomes zeros.
    """
    if distance == "euclidean":
        return embedding
    centred = np.where(np.ptp(embedding, axis=1, keepdims=True) > 0, embedding, 0.0)
    centred = centred - centred.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.asarray(centred / np.where(length > 0, length, 1.0))


def squared_distances(rows: Float64, columns: Float64, distance: Distance) -> Float64:
    """(a, b) squared distances of comparable rows (a, d_h) and columns (b, d_h)."""
    squared = np.asarray(cdist(rows, columns, "sqeuclidean"), dtype=np.float64)
    return squared if distance == "euclidean" else np.square(_one_minus_correlation(squared, rows, columns))


def distances(rows: Float64, columns: Float64, distance: Distance) -> Float64:
    """(a, b) distances of comparable rows (a, d_h) and columns (b, d_h)."""
    if distance == "euclidean":
        return np.asarray(cdist(rows, columns), dtype=np.float64)
    return _one_minus_correlation(np.asarray(cdist(rows, columns, "sqeuclidean")), rows, columns)


def _one_minus_correlation(squared: Float64, rows: Float64, columns: Float64) -> Float64:
    """One minus correlation from |u - v|^2; 1 for rows without variation."""
    flat, others = np.square(rows).sum(axis=1) == 0, np.square(columns).sum(axis=1) == 0
    return np.asarray((squared + flat[:, None] + others[None, :]) / 2)


# Similarity of subjects (FedNI Sec. III-A): A = S o S~, imaging times phenotype.
#
# S_ij = exp(-d_ij^2 / (2 sigma^2)) with d_ij = |h_i - h_j| or the correlation distance, and sigma its mean over pairs
# (or a multiple of it). S~_ij is the number of phenotypes in which i and j agree. Blocks hold at most `BLOCK_ENTRIES`
# numbers; the search among many subjects (`probable_neighbours`) also holds the probable pairs of `TILE_ROWS` subjects.
# That search uses Euclidean distances. For correlations, blocks cover all pairs.

BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class Nodes:
    """Subjects of a graph.

    Attributes:
        embedding: (n, d_h), comparable in the distance.
        phenotypes: compared ones, (n,) each: `sex` and `site` as codes (-1 unknown), `age` in
            years (NaN unknown).
        distance: distance of embeddings.
    """

    embedding: Float64
    phenotypes: Mapping[str, Values]
    distance: Distance = "euclidean"

    @classmethod
    def of(cls, embedding: Float64, phenotypes: Mapping[str, Values], distance: Distance) -> "Nodes":
        """Subjects with the embedding (n, d_h), prepared for the distance."""
        return cls(comparable(embedding, distance), phenotypes, distance)

    def __len__(self) -> int:
        return len(self.embedding)

    def take(self, positions: IntArray | slice) -> "Nodes":
        """Nodes at `positions`."""
        chosen = {name: values[positions] for name, values in self.phenotypes.items()}
        return Nodes(self.embedding[positions], chosen, self.distance)


def row_blocks(rows: int, columns: int, entries: int) -> Iterator[slice]:
    """Slices of consecutive rows whose (rows, columns) block holds at most `entries` numbers, or one row."""
    height = max(1, entries // max(1, columns))
    for start in range(0, rows, height):
        yield slice(start, min(start + height, rows))


def mean_pairwise_distance(embedding: Float64, entries: int = BLOCK_ENTRIES, distance: Distance = "euclidean") -> float:
    """Mean distance over all pairs of rows; 0 without a pair."""
    count = len(embedding)
    if count < 2:
        return 0.0
    if count > MANY and distance == "euclidean":
        return mean_distance_by_products(embedding)
    rows, total = comparable(embedding, distance), 0.0
    for block in row_blocks(count, count, entries):
        block_distances = distances(rows[block], rows, distance)
        # A subject is no pair with itself; every unordered pair counts twice.
        block_distances[np.arange(len(block_distances)), np.arange(block.start, block.stop)] = 0
        total += float(block_distances.sum())
    return total / (count * (count - 1))


def imaging_similarity(rows: Float64, columns: Float64, sigma: float, distance: Distance = "euclidean") -> Float64:
    """FedNI eq. 1: s_ij = exp(-|h_i - h_j|^2 / (2 sigma^2)) of comparable rows (a, d_h) and columns (b, d_h).

    With sigma = 0 its limit: 1 at the distance 0, else 0.
    """
    squared = squared_distances(rows, columns, distance)
    if sigma == 0:
        return np.asarray(squared == 0, dtype=np.float64)
    return np.asarray(np.exp(-squared / (2 * sigma**2)), dtype=np.float64)


def phenotype_similarity(rows: Nodes, columns: Nodes, age_gap: float) -> Float64:
    """FedNI eq. 2: s~_ij = sum over q of f_q(u_i, u_j), the number of agreeing phenotypes of rows (a) and columns (b).

    1 everywhere if no phenotype is compared.
    """
    if not rows.phenotypes:
        return np.ones((len(rows), len(columns)))
    agreeing = np.zeros((len(rows), len(columns)))
    for name, values in rows.phenotypes.items():
        agreeing += _agree(name, values[:, None], columns.phenotypes[name][None, :], age_gap)
    return agreeing


def _agree(name: str, left: Values, right: Values, age_gap: float) -> BoolArray:
    return np.asarray(np.abs(left - right) <= age_gap if name == "age" else (left == right) & (left >= 0))


def similarity(rows: Nodes, columns: Nodes, sigma: float, age_gap: float) -> Float64:
    """FedNI Sec. III-A: A = S o S~ of rows (a) against columns (b)."""
    imaging = imaging_similarity(rows.embedding, columns.embedding, sigma, rows.distance)
    return imaging * phenotype_similarity(rows, columns, age_gap)


def paired_similarity(left: Nodes, right: Nodes, sigma: float, age_gap: float) -> Float64:
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


# Find the pairs that may be among the k most similar, from float32 products with a proven margin.
#
# A pair that agrees in c phenotypes at the squared distance s weighs c exp(-s / 2 sigma^2), so the most similar pairs
# have the smallest key s / sigma^2 - 2 log c. The k-th smallest key of a sample of candidates bounds that of all.
# A pair beyond the bound by more than the error of float32 is not an edge.

LARGEST_KEY = 1300.0
"""Largest key of a bound: beyond it exp(-s / 2 sigma^2) loses digits, and pairs of different keys tie."""


@dataclass(frozen=True)
class Agreement:
    """One phenotype of a queries and b candidates as integers: they agree if 0 <= code - low < span.

    Attributes:
        low, span: (a, 1); a span of 0 agrees with nothing.
        code: (1, b); -1 where unknown.
    """

    low: NDArray[np.int32]
    span: NDArray[np.uint32]
    code: NDArray[np.int32]

    def __call__(self, rows: slice, columns: slice) -> BoolArray:
        """(rows, columns) mask of the pairs that agree."""
        return np.asarray((self.code[:, columns] - self.low[rows]).view(np.uint32) < self.span[rows])


def probable_neighbours(
    queries: Nodes, candidates: Nodes, sigma: float, *, k: int, age_gap: float
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (row, column) of pairs with the k most similar candidates of each query among them, by blocks of queries.

    Args:
        sigma: positive.
        k: number of candidates of each query, the query itself included if it is a candidate.
        age_gap: largest difference of equal ages, in years.
    """
    order = np.random.default_rng(0).permutation(len(candidates))
    shuffled = candidates.take(order)
    agreements = [
        _agreement(name, values, shuffled.phenotypes[name], age_gap) for name, values in queries.phenotypes.items()
    ]
    levels = range(1, len(agreements) + 1) if agreements else range(1)
    shifts = 2 * np.log(np.maximum(np.arange(len(agreements) + 1), 1))
    centre = candidates.embedding.mean(axis=0)
    here, there = (queries.embedding - centre) / sigma, (shuffled.embedding - centre) / sigma
    left, right = factors(here, there, np.float32)
    margin = 2 * rounding_of_products(here) + 8 * np.finfo(np.float32).eps * shifts[-1]
    # Each candidate is made nearer by its own part of the error, so a remote one widens no other's margin.
    nearer = rounding_of_products(there).astype(np.float32)
    right[-1] -= nearer
    for start in range(0, len(queries), TILE_ROWS):
        rows = slice(start, min(start + TILE_ROWS, len(queries)))
        bound, pairs = np.zeros(0), []
        for first in range(0, len(candidates), TILE_COLUMNS):
            columns = slice(first, min(first + TILE_COLUMNS, len(candidates)))
            squared = left[rows] @ right[:, columns]
            count = np.zeros(squared.shape, dtype=np.uint8)
            for agrees in agreements:
                count += agrees(rows, columns).view(np.uint8)
            if first == 0:
                farthest = squared + 2 * nearer[columns]
                keys = np.where((count > 0) | (not agreements), farthest - shifts[count].astype(np.float32), np.inf)
                sampled = np.partition(keys, k - 1, axis=1)[:, k - 1] if k <= keys.shape[1] else np.inf
                bound = _bound(np.broadcast_to(sampled, len(keys)), margin[rows])
            near = np.zeros(squared.shape, dtype=np.bool_)
            for level in levels:
                close = squared <= (bound + shifts[level]).astype(np.float32)[:, None]
                near |= close & (count == level)
            row, column = np.divmod(np.flatnonzero(near), squared.shape[1])
            pairs.append((row, column + first, squared[row, column] - shifts[count[row, column]]))
        row, column, key = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        kth = _kth_smallest(row, key + 2 * nearer[column], k, len(bound))
        kept = key <= _bound(kth, margin[rows])[row]
        yield row[kept] + start, order[column[kept]]


def _bound(kth: Float64 | Float32, margin: Float64) -> Float64:
    """Largest possible key of a neighbour, given the k-th smallest key of some candidates; both are rounded."""
    bound = kth + margin
    return np.where(bound < LARGEST_KEY, bound, np.inf)


def _kth_smallest(row: IntArray, key: Float64, k: int, rows: int) -> Float64:
    """(rows,) k-th smallest key of each row; infinite for rows with fewer keys."""
    order = np.lexsort((key, row))
    first = np.searchsorted(row[order], np.arange(rows))
    last = first + k - 1
    known = (last < len(row)) & (np.bincount(row, minlength=rows) >= k)
    kth = np.full(rows, np.inf)
    kth[known] = key[order[last[known]]]
    return kth


def _agreement(name: str, queries: Values, candidates: Values, age_gap: float) -> Agreement:
    if name == "age":
        return _of_ages(queries.astype(np.float64), candidates.astype(np.float64), age_gap)
    low = queries.astype(np.int32)[:, None]
    return Agreement(low, (low >= 0).astype(np.uint32), candidates.astype(np.int32)[None, :])


def _of_ages(queries: Float64, candidates: Float64, age_gap: float) -> Agreement:
    """Agreement of ages as intervals: the ages that agree with one are consecutive in order of age."""
    order = np.argsort(candidates)
    known = int(np.isfinite(candidates).sum())
    rank = np.full(len(candidates), -1, dtype=np.int32)
    rank[order[:known]] = np.arange(known)
    ages = candidates[order[:known]]
    low = _ages_passed(queries, ages, lambda difference: difference > age_gap)
    high = _ages_passed(queries, ages, lambda difference: difference >= -age_gap)
    return Agreement(low.astype(np.int32)[:, None], (high - low).astype(np.uint32)[:, None], rank[None, :])


def _ages_passed(queries: Float64, ages: Float64, holds: Callable[[Float64], BoolArray]) -> IntArray:
    """(a,) number of the sorted ages with `holds(query - age)`, which is true up to some age."""
    low, high = np.zeros(len(queries), dtype=np.int64), np.full(len(queries), len(ages))
    while (low < high).any():
        middle = (low + high) // 2
        passed = holds(queries - ages[np.minimum(middle, len(ages) - 1)]) & (low < high)
        low, high = np.where(passed, middle + 1, low), np.where(passed, high, middle)
    return low


# The k most similar subjects of each row, by blocks (FedNI Sec. III-A, k of Fig. 8).


@dataclass(frozen=True)
class Edges:
    """Weighted directed edges: row i receives from column j."""

    row: IntArray
    column: IntArray
    weight: Float64

    @classmethod
    def joined(cls, pieces: Sequence["Edges"]) -> "Edges":
        """The edges of all pieces, one piece after the other."""
        if not pieces:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
        return cls(
            *(np.concatenate([getattr(edges, name) for edges in pieces]) for name in ("row", "column", "weight"))
        )

    def take(self, positions: IntArray | BoolArray) -> "Edges":
        """Edges at these positions."""
        return Edges(self.row[positions], self.column[positions], self.weight[positions])

    def in_order(self) -> "Edges":
        """The edges in order of (row, column)."""
        return self.take(np.lexsort((self.column, self.row)))


def largest_in_rows(weights: Float64, k: int) -> BoolArray:
    """Mask (a, b) of the k largest positive weights of each row; ties go to the lower column."""
    k = min(k, weights.shape[1])
    if k == 0:
        return np.zeros(weights.shape, dtype=np.bool_)
    threshold = np.partition(weights, -k, axis=1)[:, -k, None]
    above = weights > threshold
    level = weights == threshold
    room = k - above.sum(axis=1, keepdims=True)
    kept = above | (level & (np.cumsum(level, axis=1, dtype=np.int32) <= room))
    return np.asarray(kept & (weights > 0))


def nearest(
    queries: Nodes, candidates: Nodes | None, sigma: float, *, k: int, age_gap: float, entries: int = BLOCK_ENTRIES
) -> Edges:
    """Edges from each query to its k most similar candidates; `None`: the other queries."""
    among_themselves = candidates is None
    others = queries if candidates is None else candidates
    if len(queries) > 0 and len(others) > MANY and sigma > 0 and queries.distance == "euclidean":
        return _nearest_of_probable(
            queries, others, sigma, k=k, age_gap=age_gap, apart=among_themselves, entries=entries
        )
    pieces: list[Edges] = []
    for block in row_blocks(len(queries), len(others), entries):
        weights = similarity(queries.take(block), others, sigma, age_gap)
        if among_themselves:
            weights[np.arange(block.stop - block.start), np.arange(block.start, block.stop)] = 0
        row, column = np.nonzero(largest_in_rows(weights, k))
        pieces.append(Edges(row + block.start, column, weights[row, column]))
    return Edges.joined(pieces)


def _nearest_of_probable(
    queries: Nodes, others: Nodes, sigma: float, *, k: int, age_gap: float, apart: bool, entries: int
) -> Edges:
    """Same edges as `nearest`, weighing probable pairs only; `apart`: query i and node i are one subject."""
    pieces: list[Edges] = []
    for row, column in probable_neighbours(queries, others, sigma, k=k + apart, age_gap=age_gap):
        pair = row != column if apart else slice(None)
        row, column = row[pair], column[pair]
        weight = np.empty(len(row))
        for pairs in row_blocks(len(row), queries.embedding.shape[1], entries):
            weight[pairs] = paired_similarity(queries.take(row[pairs]), others.take(column[pairs]), sigma, age_gap)
        order = np.lexsort((column, -weight, row))
        row, column, weight = row[order], column[order], weight[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        pieces.append(Edges(row, column, weight).take((rank < k) & (weight > 0)).in_order())
    return Edges.joined(pieces)


def symmetric(edges: Edges, nodes: int) -> Edges:
    """max(A, A^T), with entries in order of (row, column)."""
    directed = csr_array((edges.weight, (edges.row, edges.column)), shape=(nodes, nodes))
    both = directed.maximum(directed.T).tocoo()
    return Edges(both.row.astype(np.int64), both.col.astype(np.int64), both.data).in_order()
