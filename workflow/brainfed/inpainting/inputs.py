"""Inputs of an inpainting job and outputs of a trained generator, both without diagnoses."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.link import TOGETHER, Link
from brainfed.graphs.graph import Graph
from brainfed.graphs.settings import GraphSettings
from brainfed.runtime.streams import Streams

FloatArray = NDArray[np.float32] | NDArray[np.float64]
IntArray = NDArray[np.int64]


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
        streams: of the repeat.
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
    age: NDArray[np.float64]
    fitted: NDArray[np.bool_]
    part: str
    streams: Streams
    selected: tuple[IntArray, ...] = ()
    correlations: bool = True
    link: Link = TOGETHER

    def members(self, institution: int) -> IntArray:
        """Positions of the institution's training subjects."""
        return np.flatnonzero((self.institution == institution) & self.fitted)


@dataclass(frozen=True)
class Generated:
    """Generated nodes.

    Attributes:
        features: (g, d).
        sex: (g,) codes, -1 where it is not predicted.
        age: (g,) years, NaN where it is not predicted.
        site: (g,) codes, -1 unknown; None: those of the parents.
    """

    features: NDArray[np.float32]
    sex: IntArray
    age: NDArray[np.float64]
    site: IntArray | None = None


class NodeGenerator(Protocol):
    """The interface of a trained generator of missing neighbours, of any method."""

    def counts(self) -> NDArray[np.float64]:
        """(n,) predicted number of missing neighbours, not rounded; 0 for subjects that are not fitted."""

    def draw(self, parents: IntArray) -> Generated:
        """One missing neighbour for each entry of `parents` (g,), positions of subjects, equal ones adjacent."""
