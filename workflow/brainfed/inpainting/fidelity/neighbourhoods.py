"""A subject with its generated, missing and visible neighbours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Neighbourhood:
    """The neighbours of one subject with at least one generated node.

    Attributes:
        parent: position i of the subject.
        generated: (a,) its generated nodes G_i, positions among the generated nodes 0 ... g - 1.
        missing: (b,) its true missing neighbours T_i: foreign subjects with a cut edge to it.
        visible: (c,) its neighbours inside the institution, without itself.
    """

    parent: int
    generated: IntArray
    missing: IntArray
    visible: IntArray


def neighbourhoods(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> tuple[Neighbourhood, ...]:
    """The neighbourhood of every parent, in order of its position."""
    count = len(inputs.institution)
    generated = grouped(fused.parent, np.arange(len(fused.parent)), count)
    missing = grouped(cut.row, cut.column, count)
    others = inputs.graph.row != inputs.graph.column
    visible = grouped(inputs.graph.row[others], inputs.graph.column[others], count)
    parents = np.unique(fused.parent).tolist()
    return tuple(Neighbourhood(parent, generated[parent], missing[parent], visible[parent]) for parent in parents)


def grouped(row: IntArray, column: IntArray, rows: int) -> list[IntArray]:
    """The columns of each row 0 ... rows - 1, ascending."""
    order = np.lexsort((column, row))
    return np.split(column[order], np.cumsum(np.bincount(row, minlength=rows))[:-1])
