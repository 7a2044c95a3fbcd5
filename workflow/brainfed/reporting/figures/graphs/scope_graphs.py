"""Two readings of FedNI's local graphs on one cohort, and a piece of it small enough to draw (Sec. III-A).

`global_cut`: one graph over all subjects without edges between institutions. `local`: every institution's own graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges
from brainfed.runtime.artefacts import ArrayFile, read_arrays, read_table
from brainfed.runtime.errors import UserError

IntArray = NDArray[np.int64]

INSTITUTIONS = 5
"""Most that a piece shows."""
SUBJECTS = 24
"""Most that a piece shows."""


@dataclass(frozen=True)
class ScopeGraphs:
    """The edges of one repeat, self-loops left out.

    Attributes:
        institution: (n,) names.
        kept: edges of the graph over all subjects inside an institution.
        removed: its edges between institutions, which the cut removes.
        own: edges of every institution's own graph; None if no method uses it.
    """

    institution: NDArray[np.object_]
    kept: Edges
    removed: Edges
    own: Edges | None

    def degrees(self, *edges: Edges) -> IntArray:
        """(n,) number of neighbours that each subject receives from."""
        return np.bincount(np.concatenate([each.row for each in edges]), minlength=len(self.institution))

    @property
    def whole_degrees(self) -> IntArray:
        """(n,) number of neighbours before the cut."""
        return self.degrees(self.kept, self.removed)

    @property
    def cut_degrees(self) -> IntArray:
        """(n,) number of neighbours after the cut."""
        return self.degrees(self.kept)

    @property
    def own_degrees(self) -> IntArray | None:
        """(n,) number of neighbours in every institution's own graph."""
        return None if self.own is None else self.degrees(self.own)


@dataclass(frozen=True)
class Piece:
    """A subject and its neighbours.

    Attributes:
        subject: position of the subject.
        members: (m,) positions of all drawn subjects: the subject, then by institution, neighbours in the graph over
            all subjects before those in the institution's own alone.
        institutions: names, the subject's own first, then by falling number of its neighbours.
    """

    subject: int
    members: IntArray
    institutions: tuple[str, ...]

    def pairs(self, edges: Edges) -> IntArray:
        """(e, 2) places in `members` of the ends of those edges that lie inside the piece, each pair once."""
        place = np.full(1 + int(max(self.members.max(), edges.row.max(initial=0), edges.column.max(initial=0))), -1)
        place[self.members] = np.arange(len(self.members))
        ends = np.sort(np.column_stack([place[edges.row], place[edges.column]]), axis=1)
        return np.unique(ends[ends[:, 0] >= 0], axis=0)

    def neighbours(self, edges: Edges) -> IntArray:
        """Positions of the drawn members from which the subject receives by these edges."""
        return np.intersect1d(edges.column[edges.row == self.subject], self.members)


def read_scope_graphs(cut: str | Path, own: str | Path | None, split: str | Path) -> ScopeGraphs:
    """Read one repeat of the graph of scope `global_cut` and, if given, of scope `local`.

    Raises:
        UserError: they are not of the same subjects, or the first has another scope.
    """
    file = read_arrays(cut, ["row", "column", "weight", "cut_row", "cut_column", "cut_weight"])
    drawn = read_table(split, ["subject", "institution"]).set_index("subject")["institution"]
    institution = drawn.reindex(list(file.subjects)).to_numpy(dtype=object)
    return ScopeGraphs(
        institution,
        _without_loops(file, ""),
        _without_loops(file, "cut_"),
        None if own is None else _without_loops(_of_same(own, file.subjects), ""),
    )


def _of_same(path: str | Path, subjects: Sequence[str]) -> ArrayFile:
    file = read_arrays(path, ["row", "column", "weight"])
    if file.subjects != tuple(subjects):
        raise UserError(f"{path}: its subjects are not those of the graph that was cut; delete the file and run again.")
    return file


def _without_loops(file: ArrayFile, prefix: str) -> Edges:
    row, column = file.arrays[f"{prefix}row"], file.arrays[f"{prefix}column"]
    apart = row != column
    return Edges(row[apart], column[apart], file.arrays[f"{prefix}weight"][apart].astype(np.float64))


def choose_piece(graphs: ScopeGraphs) -> Piece:
    """The most typical subject with its neighbours in all the graphs, at most `SUBJECTS` of `INSTITUTIONS`.

    The most typical subject has the numbers of neighbours nearest their medians, and a removed neighbour; the first in
    a tie. Of too many neighbours, those in the institutions with most of them stay, and then the nearest by weight.
    """
    subject = _typical(graphs)
    name = graphs.institution
    joined = [graphs.kept, graphs.removed, *([] if graphs.own is None else [graphs.own])]
    weight = np.zeros(len(name))
    for edges in joined:
        mine = edges.row == subject
        np.maximum.at(weight, edges.column[mine], edges.weight[mine])
    elsewhere = name[(weight > 0) & (name != name[subject])]
    found, count = np.unique(elsewhere.astype(str), return_counts=True)
    institutions = (str(name[subject]), *found[np.argsort(-count, kind="stable")][: INSTITUTIONS - 1].tolist())
    weight[~np.isin(name, institutions)] = 0
    weight[subject] = 0
    nearest = np.argsort(-weight, kind="stable")[: SUBJECTS - 1]
    chosen = nearest[weight[nearest] > 0]
    whole = np.isin(chosen, np.concatenate([edges.column[edges.row == subject] for edges in joined[:2]]))
    chosen = chosen[np.lexsort((chosen, ~whole))]
    groups = [chosen[name[chosen] == institution] for institution in institutions]
    drawn = tuple(one for one, group in zip(institutions, groups, strict=True) if len(group) or one == name[subject])
    return Piece(subject, np.concatenate([[subject], *groups]).astype(np.int64), drawn)


def _typical(graphs: ScopeGraphs) -> int:
    degrees = [graphs.whole_degrees, graphs.cut_degrees, graphs.own_degrees]
    away = sum(np.abs(degree - np.median(degree)) for degree in degrees if degree is not None)
    lost = graphs.degrees(graphs.removed) > 0
    return int(np.argmin(np.where(lost | ~lost.any(), away, np.inf)))
