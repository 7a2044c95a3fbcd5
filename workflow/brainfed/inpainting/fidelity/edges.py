"""Recovered edges: generated nodes joined to the neighbours of their true counterparts (FedNI Sec. III-B.2)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fidelity.estimate import ratio
from brainfed.inpainting.fidelity.features import Matches
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs

IntArray = NDArray[np.int64]
Joined = csr_array  # (nodes, subjects) of 0 and 1


@dataclass(frozen=True)
class EdgeScore:
    """Summed over matched pairs, then divided (micro average); None where the denominator is 0.

    With P_u the predicted and E_j the true neighbours of a pair: precision = sum |P_u & E_j| / sum |P_u|,
    recall = sum |P_u & E_j| / sum |E_j|, f1 = 2 sum |P_u & E_j| / (sum |P_u| + sum |E_j|).
    """

    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True)
class EdgeFidelity:
    """Recovered edges of the generated nodes u that are matched to a true missing neighbour j of their parent i.

    P_u are the subjects joined to u in the fused graph, E_j those joined to j by cut edges, both without i and limited
    to fitted subjects of its institution. Weights do not count.

    Attributes:
        generated: the fused graph's edges.
        random: the expected score of |P_u| subjects drawn at random from the institution without i.
        visible_neighbours: i's visible neighbours in place of P_u.
        pairs: matched pairs.
        predicted: sum |P_u|.
        true: sum |E_j|.
    """

    generated: EdgeScore
    random: EdgeScore
    visible_neighbours: EdgeScore
    pairs: int
    predicted: int
    true: int


def compare_edges(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges, matches: Matches) -> EdgeFidelity:
    """Score the edges of matched generated nodes."""
    count, parent = len(inputs.institution), matches.parent
    joined = _joined(
        np.concatenate([fused.row, fused.column]), np.concatenate([fused.column, fused.row]), count + len(fused.parent)
    )
    predicted = _candidates(joined[count + matches.node], inputs, parent)
    true = _candidates(_joined(cut.column, cut.row, count)[matches.missing], inputs, parent)
    visible = _candidates(_joined(inputs.graph.row, inputs.graph.column, count)[parent], inputs, parent)
    return EdgeFidelity(
        generated=_score(_common(predicted, true), predicted, true),
        random=_score(_expected(predicted, true, inputs, parent), predicted, true),
        visible_neighbours=_score(_common(visible, true), visible, true),
        pairs=len(parent),
        predicted=predicted.nnz,
        true=true.nnz,
    )


def _joined(row: IntArray, column: IntArray, nodes: int) -> Joined:
    """Square matrix of 0 and 1, 1 for each edge."""
    matrix = csr_array((np.ones(len(row), np.int64), (row, column)), shape=(nodes, nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def _candidates(joined: Joined, inputs: InpaintingInputs, parent: IntArray) -> Joined:
    """Of the nodes joined in each row (pairs), the fitted subjects of the parent's institution without the parent."""
    pair, node = joined.nonzero()
    subject = node < len(inputs.institution)
    pair, node = pair[subject], node[subject]
    home = inputs.institution[parent]
    kept = inputs.fitted[node] & (inputs.institution[node] == home[pair]) & (node != parent[pair])
    shape = len(parent), len(inputs.institution)
    return csr_array((np.ones(kept.sum(), np.int64), (pair[kept], node[kept])), shape=shape)


def _common(first: Joined, second: Joined) -> float:
    return float(first.multiply(second).sum())


def _expected(predicted: Joined, true: Joined, inputs: InpaintingInputs, parent: IntArray) -> float:
    """Expected common edges of predictions drawn at random without replacement: |P| |E| / candidates."""
    members = np.bincount(inputs.institution[inputs.fitted], minlength=len(inputs.institutions))
    candidates = np.maximum(members[inputs.institution[parent]] - 1, 1)
    return float((predicted.sum(axis=1) * true.sum(axis=1) / candidates).sum())


def _score(common: float, predicted: Joined, true: Joined) -> EdgeScore:
    return EdgeScore(
        precision=ratio(common, predicted.nnz),
        recall=ratio(common, true.nnz),
        f1=ratio(2 * common, predicted.nnz + true.nnz),
    )
