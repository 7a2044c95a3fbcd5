"""The oracle: in place of generated nodes, the very subjects that the cut took away, with the edges that it took.

A simulation alone can have it, for their features cross institutions. It shows what perfect inpainting would be worth.
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


CROSSES = {"features": ("subjects", "features")} | dict.fromkeys(("sex", "age"), ("subjects",))


def true_neighbours(inputs: InpaintingInputs, parents: IntArray, cut: Edges) -> tuple[IntArray, Generated, Edges]:
    """As many of the true missing neighbours as there are generated nodes, where so many are missing.

    Each entry of `parents` (g,) gets the strongest of its missing neighbours that its institution does not have yet.

    Returns:
        parents (t,), t at most g; what the nodes are; every edge of theirs into the institution, in one direction.
    """
    learnt = inputs.fitted[cut.column] & inputs.fitted[cut.row]
    row, column, weight = cut.row[learnt], cut.column[learnt], cut.weight[learnt]
    order = np.lexsort((column, -weight, row))
    row, column, weight = row[order], column[order], weight[order]
    start, stop = (np.searchsorted(row, parents, side=side) for side in ("left", "right"))
    taken: set[tuple[int, int]] = set()
    kept, who = [], []
    for parent, first, last in zip(parents.tolist(), start.tolist(), stop.tolist(), strict=True):
        home = int(inputs.institution[parent])
        candidate = next((int(other) for other in column[first:last] if (home, int(other)) not in taken), None)
        if candidate is not None:
            taken.add((home, candidate))
            kept.append(parent)
            who.append(candidate)
    chosen, subjects = np.array(kept, dtype=np.int64), np.array(who, dtype=np.int64)
    pieces = []
    home_of_row = inputs.institution[row]
    for node, (parent, subject) in enumerate(zip(chosen, subjects, strict=True)):
        own = (column == subject) & (home_of_row == inputs.institution[parent])
        pieces.append((np.full(int(own.sum()), len(inputs.subjects) + node), row[own], weight[own]))
    new, others, weights = (
        (np.concatenate(parts) for parts in zip(*pieces, strict=True)) if pieces else (np.zeros(0, np.int64),) * 3
    )
    born = Generated(inputs.features[subjects].astype(np.float32), inputs.sex[subjects], inputs.age[subjects])
    return chosen, born, Edges(new, others, weights.astype(np.float64))


def crossings_of(
    inputs: InpaintingInputs, fused: FusedGraph, settings: FusingSettings
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger: each institution is sent the subjects that stand in its graph; nothing without the oracle."""
    if settings.nodes != "true":
        return ()
    ledger = Ledger(CROSSES, {"features": inputs.features.shape[1]}, "inpainting")
    sent = {"features": (inputs.features.shape[1:], inputs.features.itemsize)} | columns("sex", "age")
    lent = {int(code): int((fused.institution == code).sum()) for code in np.unique(fused.institution)}
    record_loan(ledger, lent, {code: len(inputs.members(code)) for code in lent}, sent)
    return ledger.rows()
