"""Weighted graph that later stages read."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """A weighted adjacency over all nodes: row i receives from column j with weight a_ij.

    Self-loops are included. The transductive graph is symmetric; in the inductive graph test subjects have
    incoming edges only. The graph is block-diagonal by institution unless the scope is global.
    """

    row: IntArray
    column: IntArray
    weight: NDArray[np.float32]
    nodes: int
