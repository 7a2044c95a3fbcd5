"""Mean aggregation over neighbours (Hamilton et al. 2017, GraphSAGE), without weights and self-loops."""

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph

IntArray = NDArray[np.int64]


def neighbour_mean(graph: Graph) -> tuple[IntArray, IntArray, NDArray[np.float64]]:
    """Edges (row, column, 1 / number of the row's neighbours) without self-loops."""
    apart = graph.row != graph.column
    row, column = graph.row[apart], graph.column[apart]
    return row, column, 1.0 / np.bincount(row, minlength=graph.nodes)[row]
