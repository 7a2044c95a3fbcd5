"""A graph of real and generated nodes (FedNI Sec. III-C.1, G+)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_arrays
from brainfed.runtime.errors import UserError

IntArray = NDArray[np.int64]


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
    weight: NDArray[np.float32]
    features: NDArray[np.float32]
    institution: IntArray
    parent: IntArray
    sex: IntArray
    age: NDArray[np.float64]
    count: NDArray[np.float64]


def read_fused(path: Path | str, subjects: Sequence[str]) -> FusedGraph:
    """The graph of real and generated nodes.

    Raises:
        UserError: the file's subjects or their order differ from `subjects`.
    """
    file = read_arrays(path)
    if file.subjects != tuple(subjects):
        raise UserError(f"{path}: its subjects are not those of the split; delete the file and run again.")
    return FusedGraph(**file.arrays)
