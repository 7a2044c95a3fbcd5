"""Edge homophily: share of neighbours with equal labels, against chance (Zhu et al. 2020)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.population.build import PopulationGraph

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Homophily:
    """Homophily of one label on one graph; NaN without an edge between labelled nodes.

    Attributes:
        unweighted: share of the edges (without self-loops) that join equal labels.
        weighted: the same share of their weight.
        chance: expected share for random partners of every row.
        edges: number of directed edges between labelled nodes.
    """

    unweighted: float
    weighted: float
    chance: float
    edges: int


def homophily(graph: PopulationGraph, label: IntArray, group: IntArray | None = None) -> Homophily:
    """Compute the homophily of a label such as diagnosis, sex or site.

    Args:
        graph: the edges.
        label: (n,) codes; -1: unknown, the node's edges do not count.
        group: (n,) institution, if edges never leave one (scopes `local` and `global_cut`): chance is
            that inside an institution, averaged over edges. None: chance over all subjects.
    """
    known = (graph.row != graph.column) & (label[graph.row] >= 0) & (label[graph.column] >= 0)
    row, column, weight = graph.row[known], graph.column[known], graph.weight[known].astype(np.float64)
    if not len(row):
        return Homophily(np.nan, np.nan, np.nan, 0)
    equal = label[row] == label[column]
    groups = np.zeros(len(label), dtype=np.int64) if group is None else group
    expected = np.array([random_pair(label[groups == index]) for index in range(int(groups.max()) + 1)])
    return Homophily(
        unweighted=float(equal.mean()),
        weighted=float(weight[equal].sum() / weight.sum()),
        chance=float(expected[groups[row]].mean()),
        edges=len(row),
    )


def random_pair(label: IntArray) -> float:
    """Probability that two different labelled nodes share their label; NaN with fewer than two."""
    counts = np.bincount(label[label >= 0])
    total = int(counts.sum())
    if total < 2:
        return np.nan
    return float((counts * (counts - 1)).sum() / (total * (total - 1)))
