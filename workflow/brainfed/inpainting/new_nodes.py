"""New nodes beside the subjects: their number, controls, place in the embedding, and the oracle's true neighbours."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import columns, record_loan
from brainfed.graphs.neighbours import Edges, Nodes
from brainfed.graphs.population import FittedPart, fit_parts
from brainfed.inpainting.inputs import FusedGraph, Generated, InpaintingInputs
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.arrays import Float32, Float64, IntArray

# The number of generated nodes of each subject (FedNI Sec. III-C.1, n~_i).


def allot(
    count: Float64,
    *,
    rounding: Literal["round", "truncate"],
    max_generated: int | None,
    cap: float | None,
    tie_order: IntArray,
) -> IntArray:
    """Whole numbers (n,) of generated nodes from predicted numbers (n,) of one institution's subjects.

    Each is rounded or truncated (`round`: halves to the even side) and clipped to 0 ... `max_generated` (None: no
    limit). Where the sum exceeds floor(cap * n), one factor scales it down to that limit: each gets the whole part of
    its share, and the largest remainders one more. Of equal remainders the larger predicted number comes first, of
    equal numbers the smaller `tie_order` (n,), drawn at random: ids are often in the order of the diagnosis.

    Raises:
        ValueError: a count is not finite.
    """
    if not np.isfinite(count).all():
        raise ValueError("predicted numbers of missing neighbours are not finite")
    whole = np.rint(count) if rounding == "round" else np.trunc(count)
    wanted = np.clip(whole, 0, max_generated).astype(np.int64)
    total = int(wanted.sum())
    # Rounding first mends products such as 0.29 * 100 = 28.999...
    limit = total if cap is None else math.floor(round(cap * len(count), 9))
    if total <= limit:
        return wanted
    given, remainder = np.divmod(wanted * limit, total)
    first = np.lexsort((tie_order, -count, -remainder))[: limit - int(given.sum())]
    given[first] += 1
    return np.asarray(given, dtype=np.int64)


# Controls in place of generated nodes: random nodes (FedNI Fig. 4), institution means and shuffled features.
#
# Controls have the generator's numbers of nodes and their parents. Means and shuffled features keep edges and
# phenotypes; random nodes have their own.


def random_nodes(inputs: InpaintingInputs, parents: IntArray) -> Generated:
    """Random inpainting: each feature normal as in the institution, sex and age those of a random member."""
    home = inputs.institution[parents]
    features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
    alike = np.zeros(len(parents), dtype=np.int64)
    for institution in np.unique(home):
        mine, members = home == institution, inputs.members(institution)
        random = inputs.streams.numpy("random-inpainting", inputs.part, int(institution))
        known = inputs.features[members].astype(np.float64)
        mean, sd = known.mean(axis=0).astype(np.float32), known.std(axis=0).astype(np.float32)
        features[mine] = mean + sd * random.standard_normal((int(mine.sum()), len(mean)), dtype=np.float32)
        alike[mine] = random.choice(members, int(mine.sum()))
    return Generated(features, inputs.sex[alike], inputs.age[alike])


def institution_means(inputs: InpaintingInputs, parents: IntArray) -> Float32:
    """Features (g, d): every node is the mean of its parent's institution."""
    features = np.zeros((len(parents), inputs.features.shape[1]), dtype=np.float32)
    home = inputs.institution[parents]
    for institution in np.unique(home):
        known = inputs.features[inputs.members(int(institution))]
        features[home == institution] = known.mean(axis=0, dtype=np.float64)
    return features


def shuffled_features(inputs: InpaintingInputs, parents: IntArray, features: Float32) -> Float32:
    """Features (g, d), permuted inside each institution."""
    place = np.arange(len(parents))
    home = inputs.institution[parents]
    for institution in np.unique(home):
        own = np.flatnonzero(home == institution)
        random = inputs.streams.numpy("shuffled-nodes", inputs.part, int(institution))
        place[own] = random.permutation(own)
    return features[place]


@dataclass(frozen=True)
class Placed:
    """Subjects 0 ... n - 1 and new nodes n ... n + g - 1.

    Attributes:
        nodes: (n + g) of them, in the embedding and with the phenotypes that the graph compares.
        parts: institution -> the fitted part of its subjects.
    """

    nodes: Nodes
    parts: dict[int, FittedPart]


def place(inputs: InpaintingInputs, home: IntArray, new_nodes: Generated, site: IntArray) -> Placed:
    """Embed new nodes beside the subjects.

    Args:
        home: (g,) the institution whose graph each new node joins.
        site: (g,) their sites, -1 unknown.
    """
    settings = inputs.graph_settings
    embedding, parts = fit_parts(inputs.features, inputs.institution, inputs.fitted, settings, selected=inputs.selected)
    part_of = {index: parts[index if settings.scope == "local" else 0] for index in np.unique(home).tolist()}
    placed = np.zeros((len(home), embedding.shape[1]))
    for index, part in part_of.items():
        projected = part.projection(new_nodes.features[home == index])
        placed[home == index, : projected.shape[1]] = projected
    compared: dict[str, IntArray | Float64] = {
        "site": np.append(inputs.site, site),
        "sex": np.append(inputs.sex, new_nodes.sex),
        "age": np.append(inputs.age, new_nodes.age),
    }
    phenotypes = {str(name): compared[name] for name in settings.phenotypes}
    return Placed(Nodes.of(np.concatenate([embedding, placed]), phenotypes, settings.distance), part_of)


# The oracle: the subjects and edges that the cut removed, in place of generated nodes.
#
# It shows the value of perfect inpainting. It exists in a simulation only, for features of subjects cross institutions.

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
    kept, joining = [], []
    for parent, first, last in zip(parents.tolist(), start.tolist(), stop.tolist(), strict=True):
        home = int(inputs.institution[parent])
        candidate = next((int(other) for other in column[first:last] if (home, int(other)) not in taken), None)
        if candidate is not None:
            taken.add((home, candidate))
            kept.append(parent)
            joining.append(candidate)
    chosen, subjects = np.array(kept, dtype=np.int64), np.array(joining, dtype=np.int64)
    pieces = []
    home_of_row = inputs.institution[row]
    for node, (parent, subject) in enumerate(zip(chosen, subjects, strict=True)):
        own = (column == subject) & (home_of_row == inputs.institution[parent])
        new = np.full(int(own.sum()), len(inputs.subjects) + node)
        pieces.append(Edges(new, row[own], weight[own].astype(np.float64)))
    new_nodes = Generated(inputs.features[subjects].astype(np.float32), inputs.sex[subjects], inputs.age[subjects])
    return chosen, new_nodes, Edges.joined(pieces)


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
