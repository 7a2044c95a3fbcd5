"""Generated nodes as further nodes of the training graph: no label, tested in no fold (FedNI Sec. III-C.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.graph import Graph
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.samples.inputs import GENERATED, FloatArray, IntArray, MethodInputs, Outcome


def with_generated(inputs: MethodInputs) -> MethodInputs:
    """The same inputs over n + g nodes: the subjects first, then the generated nodes.

    If every fold has a fused graph of its own, an institution gets as many nodes as its largest
    fold needs. In the other folds the unused nodes have no edge and zero features.
    """
    subjects = len(inputs.subjects)
    places = _places(inputs.fused, len(inputs.institutions))
    institution = np.repeat(np.arange(len(inputs.institutions)), places)
    positions = [_positions(fused, places) + subjects for fused in inputs.fused]
    more = len(institution)
    return replace(
        inputs,
        subjects=(*inputs.subjects, *(f"generated-{number}" for number in range(more))),
        institution=np.concatenate([inputs.institution, institution]),
        fold=np.concatenate([inputs.fold, np.full(more, GENERATED)]),
        labels=np.pad(inputs.labels, ((0, 0), (0, more)), constant_values=-1),
        features=tuple(_features(inputs, positions, more)) if more else inputs.features,
        graphs=tuple(
            _graph(fused, place, subjects, subjects + more)
            for fused, place in zip(inputs.fused, positions, strict=True)
        ),
        phenotypes=inputs.phenotypes.with_unknown(more),
        fused=(),
    )


def without_generated(outcome: Outcome, subjects: int) -> Outcome:
    """The outcome for the subjects alone."""
    rounds = None if outcome.round_scores is None else outcome.round_scores[:, :, :subjects]
    members = None if outcome.member_scores is None else outcome.member_scores[:, :subjects]
    return replace(outcome, scores=outcome.scores[:, :subjects], round_scores=rounds, member_scores=members)


def _places(graphs: Sequence[FusedGraph], institutions: int) -> IntArray:
    """(M,) largest number of generated nodes over the folds, by institution."""
    counts = [np.bincount(fused.institution, minlength=institutions) for fused in graphs]
    return np.asarray(np.max(counts, axis=0), dtype=np.int64)


def _positions(fused: FusedGraph, places: IntArray) -> IntArray:
    """(g,) position of each generated node among all, ordered by institution."""
    start = np.concatenate([[0], np.cumsum(places)])
    positions = np.zeros(len(fused.institution), dtype=np.int64)
    for institution in range(len(places)):
        own = np.flatnonzero(fused.institution == institution)
        positions[own] = start[institution] + np.arange(len(own))
    return positions


def _features(inputs: MethodInputs, positions: Sequence[IntArray], more: int) -> Iterator[FloatArray]:
    subjects = len(inputs.subjects)
    shared = max(len(inputs.features), len(inputs.fused))
    for fold in range(shared):
        own = inputs.features[fold if len(inputs.features) > 1 else 0]
        index = fold if len(inputs.fused) > 1 else 0
        rows: NDArray[np.float32] = np.zeros((subjects + more, own.shape[1]), dtype=np.float32)
        rows[:subjects] = own
        rows[positions[index]] = inputs.fused[index].features
        yield rows


def _graph(fused: FusedGraph, position: IntArray, subjects: int, nodes: int) -> Graph:
    place = np.concatenate([np.arange(subjects), position])
    row, column = place[fused.row], place[fused.column]
    order = np.lexsort((column, row))
    return Graph(row[order], column[order], fused.weight[order], nodes)
