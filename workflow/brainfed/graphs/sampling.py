"""Neighbours drawn at random, so that a step of training needs few nodes of a graph (Hamilton et al. 2017, Sec. 3.1).

What PyTorch Geometric's NeighborLoader draws, without its compiled extensions (pyg-lib, torch-sparse), which have no
wheels in the Python package index. Unlike there, a node keeps its self-loop, and the weights of the r others of which
f are drawn are scaled by r / f: on average over the draws the propagation is that of the whole graph.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Incoming:
    """The edges of a graph by receiver: node i hears from column[pointer[i] : pointer[i + 1]], weighted by value."""

    pointer: IntArray
    column: IntArray
    value: NDArray[np.float64]

    @classmethod
    def of_edges(cls, row: IntArray, column: IntArray, value: NDArray[np.float64], nodes: int) -> "Incoming":
        """From edges in any order."""
        order = np.lexsort((column, row))
        pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
        return cls(pointer, column[order], value[order])


@dataclass(frozen=True)
class Hop:
    """One propagation to some nodes.

    Attributes:
        senders: (b,) ascending positions of the nodes that are heard.
        matrix: (a, b) sparse weights, by receiver and sender.
    """

    senders: IntArray
    matrix: csr_array


def draw_hop(incoming: Incoming, receivers: IntArray, count: int, random: np.random.Generator | None) -> Hop:
    """The edges by which (a,) receivers hear from themselves and at most `count` others; 0: all others."""
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
