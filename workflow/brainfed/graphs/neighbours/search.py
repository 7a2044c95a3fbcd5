"""The k most similar subjects of each row, by blocks (FedNI Sec. III-A, k of Fig. 8)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from brainfed.graphs.neighbours.probable import probable_neighbours
from brainfed.graphs.neighbours.products import MANY, FloatMatrix
from brainfed.graphs.neighbours.similarity import BLOCK_ENTRIES, Nodes, paired_similarity, row_blocks, similarity


@dataclass(frozen=True)
class Edges:
    """Weighted directed edges: row i receives from column j."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.float64]


def largest_in_rows(weights: FloatMatrix, k: int) -> NDArray[np.bool_]:
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
    queries: Nodes,
    candidates: Nodes | None,
    sigma: float,
    *,
    k: int,
    age_gap: float,
    entries: int = BLOCK_ENTRIES,
) -> Edges:
    """Edges from each query to its k most similar candidates; `None`: the other queries."""
    among_themselves = candidates is None
    others = queries if candidates is None else candidates
    if len(queries) > 0 and len(others) > MANY and sigma > 0 and queries.distance == "euclidean":
        return _nearest_of_probable(
            queries, others, sigma, k=k, age_gap=age_gap, apart=among_themselves, entries=entries
        )
    found: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for block in row_blocks(len(queries), len(others), entries):
        weights = similarity(queries.take(block), others, sigma, age_gap)
        if among_themselves:
            weights[np.arange(block.stop - block.start), np.arange(block.start, block.stop)] = 0
        row, column = np.nonzero(largest_in_rows(weights, k))
        found.append((row + block.start, column, weights[row, column]))
    if not found:
        return Edges(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    row, column, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Edges(row.astype(np.int64), column.astype(np.int64), weight)


def _nearest_of_probable(
    queries: Nodes, others: Nodes, sigma: float, *, k: int, age_gap: float, apart: bool, entries: int
) -> Edges:
    """Same edges as `nearest`, weighing probable pairs only; `apart`: query i and node i are one subject."""
    found: list[Edges] = []
    for row, column in probable_neighbours(queries, others, sigma, k=k + apart, age_gap=age_gap):
        pair = row != column if apart else slice(None)
        row, column = row[pair], column[pair]
        weight = np.empty(len(row))
        for pairs in row_blocks(len(row), queries.embedding.shape[1], entries):
            weight[pairs] = paired_similarity(queries.take(row[pairs]), others.take(column[pairs]), sigma, age_gap)
        order = np.lexsort((column, -weight, row))
        row, column, weight = row[order], column[order], weight[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        kept = (rank < k) & (weight > 0)
        row, column, weight = row[kept], column[kept], weight[kept]
        order = np.lexsort((column, row))
        found.append(Edges(row[order], column[order], weight[order]))
    return Edges(*(np.concatenate([getattr(edges, name) for edges in found]) for name in ("row", "column", "weight")))


def symmetric(edges: Edges, nodes: int) -> Edges:
    """max(A, A^T), with entries in order of (row, column)."""
    directed = csr_array((edges.weight, (edges.row, edges.column)), shape=(nodes, nodes))
    both = directed.maximum(directed.T).tocoo()
    order = np.lexsort((both.col, both.row))
    return Edges(both.row[order].astype(np.int64), both.col[order].astype(np.int64), both.data[order])
