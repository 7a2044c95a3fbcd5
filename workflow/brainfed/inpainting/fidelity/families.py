"""Who lost whom: a subject, the nodes generated for it, and the neighbours that the cut took from it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import InpaintingInputs

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Family:
    """One subject that was given at least one generated node.

    Attributes:
        parent: position i of the subject.
        generated: (a,) its generated nodes G_i, positions among the generated nodes 0 ... g - 1.
        missing: (b,) its true missing neighbours T_i: subjects of other institutions from which a cut edge ran to it.
        visible: (c,) its neighbours inside the institution, itself not among them.
    """

    parent: int
    generated: IntArray
    missing: IntArray
    visible: IntArray


def families(inputs: InpaintingInputs, fused: FusedGraph, cut: Edges) -> tuple[Family, ...]:
    """The family of every parent, in order of the parent's position."""
    count = len(inputs.institution)
    generated = grouped(fused.parent, np.arange(len(fused.parent)), count)
    missing = grouped(cut.row, cut.column, count)
    others = inputs.graph.row != inputs.graph.column
    visible = grouped(inputs.graph.row[others], inputs.graph.column[others], count)
    parents = np.unique(fused.parent).tolist()
    return tuple(Family(parent, generated[parent], missing[parent], visible[parent]) for parent in parents)


def grouped(row: IntArray, column: IntArray, rows: int) -> list[IntArray]:
    """The columns of each row 0 ... rows - 1, ascending."""
    order = np.lexsort((column, row))
    return np.split(column[order], np.cumsum(np.bincount(row, minlength=rows))[:-1])
