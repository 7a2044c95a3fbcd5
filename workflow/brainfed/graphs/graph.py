"""A weighted graph as every stage after its building reads it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Graph:
    """A weighted adjacency over all nodes: row i receives from column j with weight a_ij.

    Self-loops included. Symmetric under the transductive protocol; under the inductive one rows of
    test subjects have incoming edges only. Block-diagonal by institution unless the scope is global.
    """

    row: IntArray
    column: IntArray
    weight: NDArray[np.float32]
    nodes: int
