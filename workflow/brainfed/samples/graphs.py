"""Whole graphs as samples: the connectomes of subjects, or molecules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.arrays import Float32, IntArray
from brainfed.runtime.artefacts import map_array, read_arrays
from brainfed.runtime.errors import UserError
from brainfed.samples.labelled_subjects import LabelledSubjects
from brainfed.samples.reading import chosen_rows

ARRAYS = {
    "node_start": ("int64", 1),
    "nodes": ("float32", 2),
    "edge_start": ("int64", 1),
    "source": ("int64", 1),
    "target": ("int64", 1),
    "weight": ("float32", 1),
}
"""Array -> its type and number of axes."""
BLOCK = 2**21
"""Numbers that a check reads at a time."""


@dataclass(frozen=True)
class GraphSamples:
    """n graphs in the order of the subjects.

    Attributes:
        node_start: (n + 1,) graph i has the nodes `node_start[i]` to `node_start[i + 1]`, without the last.
        nodes: (N, d) features of the nodes.
        edge_start: (n + 1,) the same for edges.
        source: (E,) number of a node inside its graph; both directions of an edge are stored, no self-loops.
        target: (E,) the same.
        weight: (E,) signed.
    """

    node_start: IntArray
    nodes: Float32
    edge_start: IntArray
    source: IntArray
    target: IntArray
    weight: Float32

    def __len__(self) -> int:
        """Number of graphs n."""
        return len(self.node_start) - 1

    def of(self, subjects: IntArray) -> "GraphSamples":
        """The graphs at these positions, in that order."""
        node_start, nodes = chosen_rows(self.node_start, subjects)
        edge_start, edges = chosen_rows(self.edge_start, subjects)
        return GraphSamples(
            node_start, self.nodes[nodes], edge_start, self.source[edges], self.target[edges], self.weight[edges]
        )

    def narrowed(self, width: int) -> "GraphSamples":
        """The same graphs with the first columns of their node features."""
        if width == self.nodes.shape[1]:
            return self
        return replace(self, nodes=np.ascontiguousarray(self.nodes[:, :width]))


def read_graph_samples(path: Path | str, subjects: Sequence[str]) -> GraphSamples:
    """The graphs of an artefact in the order of `subjects`, checked; pages of the file where that is its order.

    Raises:
        UserError: a subject is missing, a graph has no node, an edge leaves its graph or is a self-loop, a value is not
            finite, or the arrays do not fit together.
    """
    arrays = {name: map_array(path, name).arrays[name] for name in ARRAYS}
    stored: tuple[str, ...] = read_arrays(path, []).subjects
    if problem := _misfit(arrays, len(stored)):
        raise UserError(f"{path}: expected graphs of {len(stored)} subjects, found {problem}; delete it and run again.")
    place = {subject: row for row, subject in enumerate(stored)}
    absent = [subject for subject in subjects if subject not in place]
    if absent:
        raise UserError(f"{path}: subject {absent[0]!r} is missing; delete the file and run again.")
    graphs = GraphSamples(**arrays)
    if tuple(subjects) != stored:
        graphs = graphs.of(np.array([place[subject] for subject in subjects], dtype=np.int64))
    _check(graphs, subjects, path, "delete the file and run again")
    return graphs


def check_graph_samples(graphs: GraphSamples, subjects: Sequence[str], where: str) -> None:
    """Refuse graphs that no network can read, which were not read from an artefact.

    A graph may have one node, or no edge: its nodes see themselves.

    Args:
        where: opens the sentence.

    Raises:
        UserError: as of `read_graph_samples`.
    """
    if problem := _misfit({name: getattr(graphs, name) for name in ARRAYS}, len(subjects)):
        raise UserError(f"{where}: expected graphs of {len(subjects)} subjects, found {problem}; make them again.")
    _check(graphs, subjects, where, "mend this graph")


def _misfit(arrays: dict[str, NDArray[np.generic]], subjects: int) -> str:
    """The property of the arrays that does not fit; empty if all do."""
    for name, (kind, axes) in ARRAYS.items():
        if arrays[name].dtype != kind or arrays[name].ndim != axes:
            return f"{name} of {arrays[name].dtype} {arrays[name].shape}"
    for start, parts in (("node_start", ("nodes",)), ("edge_start", ("source", "target", "weight"))):
        first = arrays[start]
        if len(first) != subjects + 1 or first[0] != 0 or (np.diff(first) < 0).any():
            return f"{start} that does not ascend from 0 in {subjects + 1} steps"
        for name in parts:
            if len(arrays[name]) != first[-1]:
                return f"{len(arrays[name])} rows of {name}, not {first[-1]}"
    return ""


def _check(graphs: GraphSamples, subjects: Sequence[str], where: Path | str, remedy: str) -> None:
    """Refuse graphs that no network can read, by the id of the first."""
    sizes = np.diff(graphs.node_start)

    def refuse(subject: int, found: str) -> UserError:
        return UserError(f"{where}: the graph of subject {subjects[subject]!r} {found}; {remedy}.")

    if not sizes.all():
        raise refuse(int(np.argmin(sizes)), "has no node")
    step = max(1, BLOCK // max(1, graphs.nodes.shape[1]))
    for start in range(0, len(graphs.nodes), step):
        finite = np.isfinite(graphs.nodes[start : start + step]).all(axis=1)
        if not finite.all():
            node = start + int(np.argmin(finite))
            graph = int(np.searchsorted(graphs.node_start, node, side="right")) - 1
            raise refuse(graph, "has a node feature that is not finite")
    for start in range(0, len(graphs.source), BLOCK):
        edges = slice(start, start + BLOCK)
        source, target, weight = graphs.source[edges], graphs.target[edges], graphs.weight[edges]
        owner = np.searchsorted(graphs.edge_start, np.arange(start, start + len(source)), side="right") - 1
        size = sizes[owner]
        for wrong, found in (
            ((source < 0) | (target < 0) | (source >= size) | (target >= size), "has an edge to a node outside of it"),
            (source == target, "has a self-loop"),
            (~np.isfinite(weight), "has a weight that is not finite"),
        ):
            if wrong.any():
                raise refuse(int(owner[np.argmax(wrong)]), found)


@dataclass(frozen=True, kw_only=True)
class GraphInputs(LabelledSubjects):
    """One graph a subject.

    Attributes:
        graphs: the n graphs in the order of the subjects, shared by the folds, or such graphs of every fold.
        shapes: (M) features of a node and number of classes of every institution, where its data have fewer than the
            widest: columns beyond are zeros, labels beyond do not occur. Empty: all have all.

    Raises:
        ValueError: as of `LabelledSubjects`, or the graphs of a fold are not n, or differ in their node features.
        UserError: as of `LabelledSubjects`, or a graph is one that no network can read.
    """

    graphs: tuple[GraphSamples, ...]
    shapes: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Reject graphs of other subjects."""
        super().__post_init__()
        if len(self.graphs) not in (1, self.folds):
            raise ValueError(f"expected graphs for all folds or for each of {self.folds}, found {len(self.graphs)}")
        expected = (len(self.subjects), self.graphs[0].nodes.shape[1])
        for number, graphs in enumerate(self.graphs):
            if (len(graphs), graphs.nodes.shape[1]) != expected:
                raise ValueError(
                    f"expected {expected[0]} graphs with {expected[1]} features a node, found {len(graphs)} with "
                    f"{graphs.nodes.shape[1]}"
                )
            check_graph_samples(graphs, self.subjects, f"graphs of fold {number}" if len(self.graphs) > 1 else "graphs")

    def shape(self, institution: int) -> tuple[int, int]:
        """Features of a node and number of classes of an institution."""
        return self.shapes[institution] if self.shapes else (self.graphs[0].nodes.shape[1], self.classes)

    def fold_graphs(self, fold: int) -> GraphSamples:
        """The n graphs that fold `fold` uses."""
        return self.graphs[fold if len(self.graphs) > 1 else 0]
