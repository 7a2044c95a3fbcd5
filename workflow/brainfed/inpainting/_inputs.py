"""Inputs and results of inpainting, without diagnoses: scaled features, a trained generator, a fused graph."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.federation import TOGETHER, Link
from brainfed.graphs import Graph, GraphSettings
from brainfed.runtime import BoolArray, Float32, Float64, FloatArray, IntArray, Streams, UserError, read_arrays


@dataclass(frozen=True)
class InpaintingInputs:
    """One repeat (or one of its folds) of one cohort, subjects in ascending order of their id.

    Attributes:
        subjects: n ids.
        institutions: M names; `institution` (n,) indexes them.
        features: (n, d) imaging features.
        graph: the population graph; no edge leaves an institution.
        graph_settings: k, phenotypes and the like, for the edges of generated nodes.
        site, sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
        fitted: (n,) mask of training subjects: all, or under the inductive protocol those of the fold.
        part: `all`, or `fold-f`: keys the random streams.
        selected: the features by which the graph compares subjects under the embedding `rfe`, one list a part of the
            graph (see `PopulationGraph.selected`).
        correlations: whether the features are of a kind between -1 and 1, as their settings decide.
        link: to institutions whose subjects are not here; in a simulation all are.
    """

    subjects: tuple[str, ...]
    institutions: tuple[str, ...]
    institution: IntArray
    features: FloatArray
    graph: Graph
    graph_settings: GraphSettings
    site: IntArray
    sex: IntArray
    age: Float64
    fitted: BoolArray
    part: str
    streams: Streams
    selected: tuple[IntArray, ...] = ()
    correlations: bool = True
    link: Link = TOGETHER

    def members(self, institution: int) -> IntArray:
        """Positions of the institution's training subjects."""
        return np.flatnonzero((self.institution == institution) & self.fitted)

    @property
    def learning(self) -> list[int]:
        """Codes of the institutions with training subjects."""
        return [code for code in range(len(self.institutions)) if len(self.members(code))]

    @property
    def fold(self) -> int:
        """The fold of the streams; -1 for `all`."""
        return -1 if self.part == "all" else int(self.part.removeprefix("fold-"))


@dataclass(frozen=True)
class Generated:
    """Generated nodes.

    Attributes:
        features: (g, d).
        sex: (g,) codes, -1 where it is not predicted.
        age: (g,) years, NaN where it is not predicted.
        site: (g,) codes, -1 unknown; None: those of the parents.
    """

    features: Float32
    sex: IntArray
    age: Float64
    site: IntArray | None = None


def rank_among_equals(values: IntArray) -> IntArray:
    """(g,) number of equal entries before each one."""
    order = np.argsort(values, kind="stable")
    ranked = values[order]
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values)) - np.searchsorted(ranked, ranked)
    return rank


class NodeGenerator(Protocol):
    """The interface of a trained generator of missing neighbours, of any method."""

    def counts(self) -> Float64:
        """(n,) predicted number of missing neighbours, not rounded; 0 for subjects that are not fitted."""

    def draw(self, parents: IntArray) -> Generated:
        """One missing neighbour for each entry of `parents` (g,), positions of subjects, equal ones adjacent."""


@dataclass(frozen=True)
class TrainedGenerator:
    """A generator's weights and the record of its training.

    Attributes:
        arrays: weights by name, for `load`.
        history: institution (str), round (int), loss (str: its name, or `hidden_fraction`), value (float).
        counts: numbers of parameters, floating-point operations and rounds.
        held_out: errors on fresh masks, a row an institution; empty where they are not measured.
        crossings: one row for each kind of tensor that crossed institutions.
    """

    arrays: dict[str, NDArray[Any]]
    history: pd.DataFrame
    counts: dict[str, int] = field(default_factory=dict)
    crossings: tuple[dict[str, int | str], ...] = ()
    held_out: tuple[dict[str, float | str | None], ...] = ()


BOUND = 5.0
"""Standard deviations at the limit of tanh, equal in all institutions: generators are averaged."""


@dataclass(frozen=True)
class Scaling:
    """The generator's value of x in a column is (x - centre) / unit.

    Attributes:
        centre, unit: (d,).
    """

    centre: Float64
    unit: Float64

    def apply(self, rows: FloatArray) -> FloatArray:
        """Features (n, d) clipped to -1 ... 1, in the type of `rows`."""
        if not self.changes:
            return rows
        scaled = np.clip((rows - self.centre) / self.unit, -1, 1)
        return scaled.astype(np.float32) if rows.dtype == np.float32 else scaled

    def undo(self, rows: FloatArray) -> Float64:
        """Scaled features (n, d) in their own units."""
        return np.asarray(rows * self.unit + self.centre, dtype=np.float64)

    @property
    def changes(self) -> bool:
        """Whether scaling changes any feature."""
        return bool(self.centre.any() or (self.unit != 1).any())


def scaling_of(inputs: InpaintingInputs, institution: int) -> Scaling:
    """The institution's scaling, from its own data alone.

    Correlations stay as they are. Other features are z-scored by the institution's training subjects and divided by
    `BOUND`; a constant column becomes 0.
    """
    width = inputs.features.shape[1]
    if inputs.correlations:
        return Scaling(np.zeros(width), np.ones(width))
    rows = inputs.features[inputs.members(institution)].astype(np.float64)
    deviation = rows.std(axis=0)
    return Scaling(rows.mean(axis=0), BOUND * np.where(deviation > 0, deviation, 1.0))


# A graph of real and generated nodes (FedNI Sec. III-C.1, G+).


@dataclass(frozen=True)
class FusedGraph:
    """Real and generated nodes in one graph: nodes 0 ... n - 1 are the subjects, then g generated nodes.

    Attributes:
        row, column, weight: edges over n + g nodes in order of (row, column), self-loops included; row i receives
            from column j. Edges among subjects are the population graph's.
        features: (g, d) of the generated nodes.
        institution: (g,) codes.
        parent: (g,) position of the subject that each node is a missing neighbour of.
        sex: (g,) codes, -1 unknown.
        age: (g,) years, NaN unknown.
        count: (n,) predicted number of missing neighbours before rounding and cap.
    """

    row: IntArray
    column: IntArray
    weight: Float32
    features: Float32
    institution: IntArray
    parent: IntArray
    sex: IntArray
    age: Float64
    count: Float64


def read_fused(path: Path | str, subjects: Sequence[str]) -> FusedGraph:
    """The graph of real and generated nodes.

    Raises:
        UserError: the file's subjects or their order differ from `subjects`.
    """
    file = read_arrays(path)
    if file.subjects != tuple(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    return FusedGraph(**file.arrays)
