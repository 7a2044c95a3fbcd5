"""A weighted graph, and what networks read of it: normalised adjacency, neighbour means."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from brainfed.graphs._settings import GraphSettings
from brainfed.runtime import Float32, Float64, FloatArray, IntArray


@dataclass(frozen=True)
class Graph:
    """A weighted adjacency over all nodes: row i receives from column j with weight a_ij.

    Self-loops are included. The transductive graph is symmetric; in the inductive graph test subjects have
    incoming edges only. The graph is block-diagonal by institution unless the scope is global.
    """

    row: IntArray
    column: IntArray
    weight: Float32
    nodes: int


def known_phenotypes(settings: GraphSettings, *, site: IntArray, sex: IntArray, age: Float64) -> GraphSettings:
    """Settings without phenotypes that are unknown for all subjects, such as sex under the target sex.

    Args:
        site: (n,) codes, -1 unknown.
        sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
    """
    known = {"site": (site >= 0).any(), "sex": (sex >= 0).any(), "age": np.isfinite(age).any()}
    return replace(settings, phenotypes=tuple(name for name in settings.phenotypes if known[name]))


# GCN propagation D^-1/2 A D^-1/2 with D the row sums of A (FedNI Sec. III-A; Kipf & Welling 2017).


def normalised_adjacency(graph: Graph) -> tuple[IntArray, IntArray, Float64]:
    """Row, column and value of D^-1/2 A D^-1/2: a_ij / sqrt(d_i d_j), in the order of the graph's edges.

    The formula also holds on an inductive graph: the sum of a training row has no test subject. Edges of
    a node with an empty row get 0.
    """
    degree = np.bincount(graph.row, weights=graph.weight, minlength=graph.nodes)
    scale = np.zeros(graph.nodes)
    np.divide(1.0, np.sqrt(degree), out=scale, where=degree > 0)
    return graph.row, graph.column, scale[graph.row] * graph.weight.astype(np.float64) * scale[graph.column]


def block_edges(
    row: IntArray, column: IntArray, value: FloatArray, members: IntArray, nodes: int
) -> tuple[IntArray, IntArray, Float64]:
    """Edges among `members`, with their ends as positions in `members`."""
    place = np.full(nodes, -1, dtype=np.int64)
    place[members] = np.arange(len(members))
    inside = (place[row] >= 0) & (place[column] >= 0)
    return place[row[inside]], place[column[inside]], value[inside].astype(np.float64)


def edges_by_block(
    row: IntArray, column: IntArray, value: FloatArray, groups: Sequence[IntArray], nodes: int
) -> list[tuple[IntArray, IntArray, Float64]]:
    """`block_edges` of each of several groups without a common member, in one pass over the edges."""
    group, place = np.full(nodes, -1, dtype=np.int64), np.zeros(nodes, dtype=np.int64)
    for number, members in enumerate(groups):
        group[members], place[members] = number, np.arange(len(members))
    inside = np.flatnonzero((group[row] >= 0) & (group[row] == group[column]))
    order = inside[np.argsort(group[row[inside]], kind="stable")]
    ends = np.searchsorted(group[row[order]], np.arange(1, len(groups)))
    return [(place[row[own]], place[column[own]], value[own].astype(np.float64)) for own in np.split(order, ends)]


def dense_block(row: IntArray, column: IntArray, value: FloatArray, members: IntArray, nodes: int) -> Float64:
    """(m, m) block of the rows and columns `members`; other edges are left out."""
    row, column, value = block_edges(row, column, value, members, nodes)
    block = np.zeros((len(members), len(members)))
    block[row, column] = value
    return block


# Mean aggregation over neighbours (Hamilton et al. 2017, GraphSAGE), without weights and self-loops.


def neighbour_mean(graph: Graph) -> tuple[IntArray, IntArray, Float64]:
    """Edges (row, column, 1 / number of the row's neighbours) without self-loops."""
    apart = graph.row != graph.column
    row, column = graph.row[apart], graph.column[apart]
    return row, column, 1.0 / np.bincount(row, minlength=graph.nodes)[row]
