"""Find the pairs that may be among the k most similar, from float32 products with a proven margin.

A pair that agrees in c phenotypes at the squared distance s weighs c exp(-s / 2 sigma^2), so the most similar pairs
have the smallest key s / sigma^2 - 2 log c. The k-th smallest key of a sample of candidates bounds that of all.
A pair beyond the bound by more than the error of float32 is not an edge.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.products import TILE_COLUMNS, TILE_ROWS, factors, rounding_of_products
from brainfed.graphs.neighbours.similarity import Nodes, Values

IntArray = NDArray[np.int64]
Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]

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

    def __call__(self, rows: slice, columns: slice) -> NDArray[np.bool_]:
        """(rows, columns) mask of the pairs that agree."""
        return np.asarray((self.code[:, columns] - self.low[rows]).view(np.uint32) < self.span[rows])


def probable_neighbours(
    queries: Nodes, candidates: Nodes, sigma: float, *, k: int, age_gap: float
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield (row, column) of pairs with the k most similar candidates of each query among them, by blocks of queries.

    Args:
        queries: a subjects.
        candidates: b subjects.
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
        bound, found = np.zeros(0), []
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
            found.append((row, column + first, squared[row, column] - shifts[count[row, column]]))
        row, column, key = (np.concatenate(parts) for parts in zip(*found, strict=True))
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


def _ages_passed(queries: Float64, ages: Float64, holds: Callable[[Float64], NDArray[np.bool_]]) -> IntArray:
    """(a,) number of the sorted ages with `holds(query - age)`, which is true up to some age."""
    low, high = np.zeros(len(queries), dtype=np.int64), np.full(len(queries), len(ages))
    while (low < high).any():
        middle = (low + high) // 2
        passed = holds(queries - ages[np.minimum(middle, len(ages) - 1)]) & (low < high)
        low, high = np.where(passed, middle + 1, low), np.where(passed, high, middle)
    return low
