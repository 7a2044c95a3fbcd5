"""Graphs as samples: a subject's connectome, or a molecule."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.samples.labelled_subjects import IntArray


@dataclass(frozen=True)
class GraphSamples:
    """n graphs, in the order of the subjects.

    Attributes:
        node_start: (n + 1,) the nodes of graph i are `node_start[i]` : `node_start[i + 1]`.
        nodes: (N, d) float32 features of the nodes.
        edge_start: (n + 1,) the edges of graph i are `edge_start[i]` : `edge_start[i + 1]`.
        source: (E,) numbers of nodes inside their graph; both directions are stored, no self-loops.
        target: (E,) as `source`.
        weight: (E,) float32, signed.
    """

    node_start: IntArray
    nodes: NDArray[np.float32]
    edge_start: IntArray
    source: IntArray
    target: IntArray
    weight: NDArray[np.float32]

    def of(self, subjects: IntArray) -> "GraphSamples":
        """The graphs of `subjects` (positions), in that order."""
        node_start, nodes = _pieces(self.node_start, subjects)
        edge_start, edges = _pieces(self.edge_start, subjects)
        return GraphSamples(
            node_start, self.nodes[nodes], edge_start, self.source[edges], self.target[edges], self.weight[edges]
        )


def _pieces(start: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Starts (k + 1,) of the chosen pieces laid end to end, and where their members were."""
    sizes = np.diff(start)[chosen]
    fresh = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return fresh, np.repeat(start[:-1][chosen] - fresh[:-1], sizes) + np.arange(fresh[-1])
