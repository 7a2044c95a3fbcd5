"""Random sampling of neighbours, so that a training step needs few nodes of a graph (Hamilton et al. 2017, Sec. 3.1).

The sampling is that of PyTorch Geometric's NeighborLoader, without its compiled extensions (pyg-lib, torch-sparse),
which have no wheels in the Python package index. Unlike there, a node keeps its self-loop, and the weights of f drawn
neighbours of r are scaled by r / f, so that the mean propagation over draws is that of the whole graph.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Incoming:
    """Edges of a graph by receiver: node i receives from column[pointer[i] : pointer[i + 1]], weighted by value."""

    pointer: IntArray
    column: IntArray
    value: NDArray[np.float64]

    @classmethod
    def of_edges(cls, row: IntArray, column: IntArray, value: NDArray[np.float64], nodes: int) -> "Incoming":
        """Sort edges of any order by receiver."""
        order = np.lexsort((column, row))
        pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
        return cls(pointer, column[order], value[order])


@dataclass(frozen=True)
class Hop:
    """Propagation to some nodes.

    Attributes:
        senders: (b,) ascending positions of the sending nodes.
        matrix: (a, b) sparse weights, by receiver and sender.
    """

    senders: IntArray
    matrix: csr_array


def draw_hop(incoming: Incoming, receivers: IntArray, count: int, random: np.random.Generator | None) -> Hop:
    """Draw the edges to (a,) receivers from themselves and at most `count` others; 0: all others."""
    first, length = incoming.pointer[receivers], np.diff(incoming.pointer)[receivers]
    row = np.repeat(np.arange(len(receivers)), length)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    edge = first[row] + rank
    column, value = incoming.column[edge], incoming.value[edge]
    if count and random is not None:
        own = column == receivers[row]
        loops = np.bincount(row[own], minlength=len(receivers))
        value = np.where(own, value, value * np.maximum((length - loops) / count, 1)[row])
        order = np.lexsort((np.where(own, -1, random.random(len(row))), row))
        kept = order[rank < (count + loops)[row]]
        row, column, value = row[kept], column[kept], value[kept]
    senders, place = np.unique(column, return_inverse=True)
    return Hop(senders, csr_array((value, (row, place)), shape=(len(receivers), len(senders))))
