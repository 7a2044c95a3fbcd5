"""The oracle: the subjects and edges that the cut removed, in place of generated nodes.

It shows the value of perfect inpainting. It exists in a simulation only, for features of subjects cross institutions.
"""

import numpy as np
from numpy.typing import NDArray

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import columns, record_loan
from brainfed.graphs.neighbours.search import Edges
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.inputs import Generated, InpaintingInputs
from brainfed.inpainting.settings import FusingSettings

IntArray = NDArray[np.int64]

SHARED_TENSORS = {"features": ("subjects", "features")} | dict.fromkeys(("sex", "age"), ("subjects",))


def true_neighbours(inputs: InpaintingInputs, parents: IntArray, cut: Edges) -> tuple[IntArray, Generated, Edges]:
    """True missing neighbours, at most as many as there are generated nodes.

    Each entry of `parents` (g,) gets its strongest missing neighbour that its institution does not have yet.

    Returns:
        parents (t,), t at most g; features and phenotypes of the nodes; all their edges into the institution, in one
        direction.
    """
    fitted = inputs.fitted[cut.column] & inputs.fitted[cut.row]
    row, column, weight = cut.row[fitted], cut.column[fitted], cut.weight[fitted]
    order = np.lexsort((column, -weight, row))
    row, column, weight = row[order], column[order], weight[order]
    start, stop = (np.searchsorted(row, parents, side=side) for side in ("left", "right"))
    taken: set[tuple[int, int]] = set()
    kept, chosen_subjects = [], []
    for parent, first, last in zip(parents.tolist(), start.tolist(), stop.tolist(), strict=True):
        home = int(inputs.institution[parent])
        candidate = next((int(other) for other in column[first:last] if (home, int(other)) not in taken), None)
        if candidate is not None:
            taken.add((home, candidate))
            kept.append(parent)
            chosen_subjects.append(candidate)
    chosen, subjects = np.array(kept, dtype=np.int64), np.array(chosen_subjects, dtype=np.int64)
    pieces = []
    home_of_row = inputs.institution[row]
    for node, (parent, subject) in enumerate(zip(chosen, subjects, strict=True)):
        own = (column == subject) & (home_of_row == inputs.institution[parent])
        pieces.append((np.full(int(own.sum()), len(inputs.subjects) + node), row[own], weight[own]))
    new, others, weights = (
        (np.concatenate(parts) for parts in zip(*pieces, strict=True)) if pieces else (np.zeros(0, np.int64),) * 3
    )
    new_nodes = Generated(inputs.features[subjects].astype(np.float32), inputs.sex[subjects], inputs.age[subjects])
    return chosen, new_nodes, Edges(new, others, weights.astype(np.float64))


def crossings_of(
    inputs: InpaintingInputs, fused: FusedGraph, settings: FusingSettings
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger: each institution receives the foreign subjects in its graph; none without the oracle."""
    if settings.nodes != "true":
        return ()
    ledger = Ledger(SHARED_TENSORS, {"features": inputs.features.shape[1]}, "inpainting")
    sent = {"features": (inputs.features.shape[1:], inputs.features.itemsize)} | columns("sex", "age")
    lent = {int(code): int((fused.institution == code).sum()) for code in np.unique(fused.institution)}
    record_loan(ledger, lent, {code: len(inputs.members(code)) for code in lent}, sent)
    return ledger.rows()
