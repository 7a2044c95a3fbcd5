"""Subjects as region series, cut into windows, some of them public; and subjects as whole graphs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime import BoolArray, Float32, IntArray, Streams, UserError, map_array, read_arrays
from brainfed.samples._labelled_subjects import HIDDEN, LabelledSubjects
from brainfed.samples._reading import chosen_rows

# Windows of region series: one at random in training, several that cover the series in a test.  [choice] FGLBC states
# no window. All subjects have windows of one length; a series that is shorter is repeated from its beginning until it
# fills the window.


def window(series: Float32, length: int, offset: int) -> Float32:
    """(length, R) time points of a (T, R) series from `offset`; a shorter series is wrapped.

    The window is a view where the series fills it.

    Raises:
        ValueError: the window begins before the series or ends after it.
    """
    latest = _latest(len(series), length)
    if not 0 <= offset <= latest:
        raise ValueError(f"expected an offset from 0 to {latest}, found {offset}")
    if len(series) >= length:
        return series[offset : offset + length]
    return series[np.arange(length) % len(series)]


def training_offset(streams: Streams, timepoints: int, length: int, *parts: int | str) -> int:
    """Offset of a window of training, uniform from 0 to T - length; 0 for a series that is shorter.

    Args:
        timepoints: T of the subject.
        length: of the window.
        parts: what else keys the draw: institution, fold, id of the subject, round, epoch, step.
    """
    return streams.key("training-window", *parts) % (_latest(timepoints, length) + 1)


def test_offsets(timepoints: int, length: int) -> tuple[int, ...]:
    """Offsets of the ceil(T / length) windows of a test: evenly spaced, from the first time point to the last."""
    count = max(1, math.ceil(timepoints / length))
    return tuple(number * _latest(timepoints, length) // max(1, count - 1) for number in range(count))


def wrapped(lengths: IntArray, length: int) -> int:
    """Number of subjects whose series (n,) are shorter than the window, and are repeated to fill it."""
    return int((lengths < length).sum())


def _latest(timepoints: int, length: int) -> int:
    """Last offset of a window in a series of T time points."""
    if timepoints < 1 or length < 1:
        raise ValueError(f"expected a time point and a window of one or more, found {timepoints} and {length}")
    return max(timepoints - length, 0)


LEAST_TIMEPOINTS = 2
"""Time points without which a series has no correlation."""
BLOCK = 2**14
"""Time points that a check reads at a time."""


@dataclass(frozen=True, kw_only=True)
class SeriesInputs(LabelledSubjects):
    """One series of R regions a subject, of its own length. A subject is one sample, whatever windows are cut from it.

    Attributes:
        start: (n + 1,) subject i has the time points `start[i]` to `start[i + 1]`, without the last.
        series: (sum of T, R) z-scores of every subject and region; a region without signal is 0 throughout.

    Raises:
        ValueError: as of `LabelledSubjects`, or the arrays do not fit together.
        UserError: as of `LabelledSubjects`, or a series has fewer than two time points or a value that is not finite.
    """

    start: IntArray
    series: Float32

    def __post_init__(self) -> None:
        """Reject series that no method can read."""
        super().__post_init__()
        if problem := _misfit(self.start, self.series, len(self.subjects)):
            raise ValueError(f"expected the series of {len(self.subjects)} subjects, found {problem}")
        short = np.flatnonzero(self.lengths < LEAST_TIMEPOINTS)
        if len(short):
            raise UserError(
                f"Subject {self.subjects[short[0]]}: expected a series of at least {LEAST_TIMEPOINTS} time points, "
                f"found {self.lengths[short[0]]}; leave the subject out of the phenotype table."
            )
        for first in range(0, len(self.series), BLOCK):
            finite = np.isfinite(self.series[first : first + BLOCK]).all(axis=1)
            if not finite.all():
                moment = first + int(np.argmin(finite))
                subject = int(np.searchsorted(self.start, moment, side="right")) - 1
                raise UserError(
                    f"Subject {self.subjects[subject]}: expected a series of finite values, found another at time "
                    f"point {moment - self.start[subject]}; delete the cohort's folder `series` and run again."
                )

    @property
    def regions(self) -> int:
        """Number of regions R."""
        return int(self.series.shape[1])

    @property
    def lengths(self) -> IntArray:
        """(n,) number of time points T of every subject."""
        return np.diff(self.start)

    def subject(self, position: int) -> Float32:
        """(T, R) series of the subject at this position, a view."""
        return self.series[self.start[position] : self.start[position + 1]]


def read_series(path: Path | str, subjects: Sequence[str]) -> tuple[IntArray, Float32]:
    """Starts and series of an artefact in the order of `subjects`; pages of the file where that is its order.

    Raises:
        UserError: a subject is missing, or the arrays do not fit together.
    """
    start, series = (map_array(path, name).arrays[name] for name in ("start", "series"))
    stored: tuple[str, ...] = read_arrays(path, []).subjects
    if problem := _misfit(start, series, len(stored)):
        raise UserError(f"{path}: expected series of {len(stored)} subjects, found {problem}; delete it and run again.")
    place = {subject: position for position, subject in enumerate(stored)}
    absent = [subject for subject in subjects if subject not in place]
    if absent:
        raise UserError(
            f"{path}: expected the series of every subject, found none of {absent[0]!r} ({len(absent)} of "
            f"{len(subjects)} subjects); delete the file and run again."
        )
    if tuple(subjects) == stored:
        return start, series
    chosen, rows = chosen_rows(start, np.array([place[subject] for subject in subjects], dtype=np.int64))
    return chosen, series[rows]


def _misfit(start: IntArray, series: Float32, subjects: int) -> str:
    """The property of the arrays that does not fit; empty if all do."""
    if start.dtype != np.int64 or start.shape != (subjects + 1,) or start[0] != 0 or (np.diff(start) < 0).any():
        return f"start that does not ascend from 0 in {subjects} steps"
    if series.dtype != np.float32 or series.ndim != 2 or series.shape[1] == 0:
        return f"series of {series.dtype} {series.shape}"
    return "" if len(series) == start[-1] else f"{len(series)} time points, not {start[-1]}"


@dataclass(frozen=True, kw_only=True)
class PublicSeriesInputs(SeriesInputs):
    """Region series; in each fold the server may read those of the public training subjects, and their labels.

    Attributes:
        public: (F, n) whether each subject is public in the training of each fold.

    Raises:
        ValueError: as of `SeriesInputs`, the mask has another shape, or a subject that a fold tests, or without a
            label, is public in it.
        UserError: as of `SeriesInputs`.
    """

    public: BoolArray

    def __post_init__(self) -> None:
        """Reject public subjects that do not train."""
        super().__post_init__()
        if self.public.dtype != np.bool_ or self.public.shape != self.labels.shape:
            raise ValueError(
                f"expected public as booleans {self.labels.shape}, found {self.public.dtype} {self.public.shape}"
            )
        leaked = self.public & (self.labels == HIDDEN)
        if leaked.any():
            fold, subject = np.argwhere(leaked)[0].tolist()
            raise ValueError(
                f"expected public subjects among those that train, found {self.subjects[subject]!r} in fold {fold}, "
                "which tests it or which has no label of it"
            )

    def public_training(self, fold: int) -> IntArray:
        """Positions of the public training subjects of `fold`, of all institutions, ascending."""
        return np.flatnonzero(self.public[fold])

    def private_training(self, fold: int, institution: int) -> IntArray:
        """Positions of the training subjects of `fold` that an institution keeps to itself, ascending."""
        return np.flatnonzero(self.training(fold) & ~self.public[fold] & (self.institution == institution))


# Whole graphs as samples: the connectomes of subjects, or molecules.

ARRAYS = {
    "node_start": ("int64", 1),
    "nodes": ("float32", 2),
    "edge_start": ("int64", 1),
    "source": ("int64", 1),
    "target": ("int64", 1),
    "weight": ("float32", 1),
}
"""Array -> its type and number of axes."""
EDGE_BLOCK = 2**21
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
    if problem := _graph_misfit(arrays, len(stored)):
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
    if problem := _graph_misfit({name: getattr(graphs, name) for name in ARRAYS}, len(subjects)):
        raise UserError(f"{where}: expected graphs of {len(subjects)} subjects, found {problem}; make them again.")
    _check(graphs, subjects, where, "mend this graph")


def _graph_misfit(arrays: dict[str, NDArray[np.generic]], subjects: int) -> str:
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

    def refuse(subject: int, defect: str) -> UserError:
        return UserError(f"{where}: the graph of subject {subjects[subject]!r} {defect}; {remedy}.")

    if not sizes.all():
        raise refuse(int(np.argmin(sizes)), "has no node")
    step = max(1, EDGE_BLOCK // max(1, graphs.nodes.shape[1]))
    for start in range(0, len(graphs.nodes), step):
        finite = np.isfinite(graphs.nodes[start : start + step]).all(axis=1)
        if not finite.all():
            node = start + int(np.argmin(finite))
            graph = int(np.searchsorted(graphs.node_start, node, side="right")) - 1
            raise refuse(graph, "has a node feature that is not finite")
    for start in range(0, len(graphs.source), EDGE_BLOCK):
        edges = slice(start, start + EDGE_BLOCK)
        source, target, weight = graphs.source[edges], graphs.target[edges], graphs.weight[edges]
        owner = np.searchsorted(graphs.edge_start, np.arange(start, start + len(source)), side="right") - 1
        size = sizes[owner]
        for wrong, defect in (
            ((source < 0) | (target < 0) | (source >= size) | (target >= size), "has an edge to a node outside of it"),
            (source == target, "has a self-loop"),
            (~np.isfinite(weight), "has a weight that is not finite"),
        ):
            if wrong.any():
                raise refuse(int(owner[np.argmax(wrong)]), defect)


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
