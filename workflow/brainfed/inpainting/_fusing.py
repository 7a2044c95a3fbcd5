"""Join generated nodes to the population graph by their edges: the classifier's training graph."""

import logging
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from brainfed.federation import Ledger, columns, record_loan
from brainfed.graphs import (
    Edges,
    FittedPart,
    GraphSettings,
    Nodes,
    fit_parts,
    nearest,
    row_blocks,
    similarity,
    symmetric,
)
from brainfed.inpainting._inputs import FusedGraph, Generated, InpaintingInputs, NodeGenerator
from brainfed.inpainting._settings import FusingSettings
from brainfed.runtime import BoolArray, Float32, Float64, FloatArray, IntArray, UserError

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


# Edges of generated nodes (FedNI Sec. III-B.2): to the parent, and to others of its institution.
#
# A true foreign neighbour has as many neighbours in the institution as a subject of its own: about three under the
# scope `global_cut`, its parent among them, and the graph's k under `local`.


PAIR_BLOCK = 64
"""Pairs (node, parent) compared at once, all with all; only the diagonal is used."""


def join(inputs: InpaintingInputs, parents: IntArray, new_nodes: Generated, settings: FusingSettings) -> Edges:
    """Edges from new nodes n ... n + g - 1 to subjects, in one direction.

    Args:
        parents: (g,) position of each new node's parent.
        settings: of fusing; random nodes get random neighbours.
    """
    if settings.edges == "binary":
        return Edges(len(inputs.subjects) + np.arange(len(parents)), parents, np.ones(len(parents)))
    if settings.nodes == "random":
        return _random_edges(inputs, parents, settings)
    return _similar_edges(inputs, parents, new_nodes, settings)


def neighbours_of_a_node(inputs: InpaintingInputs, institution: int, settings: FusingSettings) -> int:
    """The number of neighbours of a new node in the institution.

    Under `global_cut` the rounded mean degree inside the institution, over subjects with neighbours there. Under
    `local` and `edges: k` it is k, and the parent in addition where it is not among them.
    """
    if settings.edges == "parent":
        return 1
    k = inputs.graph_settings.k
    if settings.edges == "k" or inputs.graph_settings.scope != "global_cut":
        return k
    members, graph = inputs.members(institution), inputs.graph
    degrees = np.bincount(graph.row[_inside(inputs, members)], minlength=graph.nodes)[members]
    joined = degrees[degrees > 0]
    return min(k, round(float(joined.mean()))) if len(joined) else 1


def _random_edges(inputs: InpaintingInputs, parents: IntArray, settings: FusingSettings) -> Edges:
    """From each new node to its parent and to random subjects, with random weights of edges among subjects."""
    graph, home = inputs.graph, inputs.institution[parents]
    pieces = []
    for institution in np.unique(home):
        members = inputs.members(institution)
        random = inputs.streams.numpy("random-edges", inputs.part, int(institution))
        real = _inside(inputs, members)
        weights = graph.weight[real].astype(np.float64) if real.any() else np.ones(1)
        size = min(neighbours_of_a_node(inputs, int(institution), settings), len(members))
        for node in np.flatnonzero(home == institution):
            others = random.choice(members[members != parents[node]], size - 1, replace=False)
            row = np.full(size, len(inputs.subjects) + node)
            pieces.append(Edges(row, np.append(others, parents[node]), random.choice(weights, size)))
    return Edges.joined(pieces)


def _similar_edges(inputs: InpaintingInputs, parents: IntArray, new_nodes: Generated, chosen: FusingSettings) -> Edges:
    """From each new node to its parent, and to its neighbours by the population graph's rule."""
    settings, home = inputs.graph_settings, inputs.institution[parents]
    placed = place(inputs, home, new_nodes, inputs.site[parents] if new_nodes.site is None else new_nodes.site)
    pieces = []
    for index, part in placed.parts.items():
        mine = np.flatnonzero(home == index)
        new = len(inputs.subjects) + mine
        members, degree = inputs.members(index), neighbours_of_a_node(inputs, index, chosen)
        weakest = float(inputs.graph.weight[_inside(inputs, members)].min(initial=np.inf))
        weakest = 1.0 if np.isinf(weakest) else weakest
        pieces.append(_neighbours(placed.nodes, new, members, parents[mine], part.sigma, settings, degree, weakest))
    return Edges.joined(pieces)


def _neighbours(
    nodes: Nodes,
    new: IntArray,
    existing: IntArray,
    parents: IntArray,
    sigma: float,
    settings: GraphSettings,
    degree: int,
    weakest: float,
) -> Edges:
    """Edges from nodes `new` (g,) to the `degree` most similar of `existing`, and to `parents` (g,).

    Where `degree` is below k, a parent that is not among them replaces the last. A parent without similarity gets the
    row's smallest weight, or `weakest` where no subject is similar. New nodes are not joined to each other: they are
    so similar that they would displace the subjects.
    """
    real = nearest(nodes.take(new), nodes.take(existing), sigma, k=degree, age_gap=settings.age_gap)
    positive = real.weight.astype(np.float32) > 0
    row, column, weight = real.row[positive], existing[real.column[positive]], real.weight[positive]
    smallest = np.full(len(new), np.inf)
    np.minimum.at(smallest, row, weight)
    smallest[np.isinf(smallest)] = weakest
    linked = np.zeros(len(new), dtype=np.bool_)
    linked[row[column == parents[row]]] = True
    apart = np.flatnonzero(~linked)
    own = _paired_similarity(nodes.take(new[apart]), nodes.take(parents[apart]), sigma, settings.age_gap)
    own = np.where(own.astype(np.float32) > 0, own, smallest[apart])
    if degree < settings.k:
        kept = _without_last(row, weight, apart, degree)
        row, column, weight = row[kept], column[kept], weight[kept]
    return Edges(np.append(new[row], new[apart]), np.append(column, parents[apart]), np.append(weight, own))


def _without_last(row: IntArray, weight: Float64, shortened: IntArray, degree: int) -> BoolArray:
    """Mask (e,) of edges (row, weight) without the weakest of each row in `shortened` that has `degree` of them.

    Of equal weights the later edge is the weaker one.
    """
    order = np.lexsort((-np.arange(len(row)), weight, row))
    full = shortened[np.bincount(row, minlength=shortened.max(initial=-1) + 1)[shortened] == degree]
    last = order[np.searchsorted(row[order], full)]
    kept = np.ones(len(row), dtype=np.bool_)
    kept[last] = False
    return kept


def _inside(inputs: InpaintingInputs, members: IntArray) -> BoolArray:
    """Mask (e,) of the edges between two different subjects of `members`."""
    graph = inputs.graph
    return np.asarray((graph.row != graph.column) & np.isin(graph.row, members) & np.isin(graph.column, members))


def _paired_similarity(left: Nodes, right: Nodes, sigma: float, age_gap: float) -> Float64:
    """S o S~ (g,) of each pair of `left` (g) and `right` (g)."""
    paired = np.zeros(len(left))
    for block in row_blocks(len(left), 1, PAIR_BLOCK):
        paired[block] = np.diagonal(similarity(left.take(block), right.take(block), sigma, age_gap))
    return paired


# Join generated nodes to the population graph: the classifier's training graph (FedNI Sec. III-C.1).
#
# Edges among subjects do not change.

logger = logging.getLogger(__name__)


def fuse(
    inputs: InpaintingInputs,
    generator: NodeGenerator,
    settings: FusingSettings,
    max_generated: int | None,
    cut: Edges | None = None,
) -> FusedGraph:
    """Join a generator's missing neighbours to the subjects (FedNI Algorithm 1, lines 3 and 24).

    Args:
        inputs: subjects and their graph; only `fitted` subjects get generated neighbours.
        generator: under `nodes: random` and `true` only its counts are used.
        max_generated: largest number of generated nodes of one subject; None: no limit.
        cut: the edges that the graph's cut removed; `nodes: true` needs them.

    Raises:
        UserError: a count or feature of the generator is not finite.
    """
    count = generator.counts()
    _require_finite(count, inputs.subjects)
    parents = _parents(inputs, count, settings, max_generated)
    if settings.nodes == "true":
        if cut is None:
            raise ValueError("nodes: true needs the edges that were cut away")
        parents, new_nodes, edges = true_neighbours(inputs, parents, cut)
    else:
        new_nodes = _new_nodes(inputs, generator, parents, settings)
        edges = join(inputs, parents, new_nodes, settings)
    features = new_nodes.features
    if settings.nodes == "shuffled":
        features = shuffled_features(inputs, parents, new_nodes.features)
    if settings.nodes == "mean":
        features = institution_means(inputs, parents)
    _log_numbers(inputs, count, len(parents), settings)
    row, column, weight = _joined(inputs, edges, len(parents))
    institution = inputs.institution[parents]
    return FusedGraph(row, column, weight, features, institution, parents, new_nodes.sex, new_nodes.age, count)


def _log_numbers(inputs: InpaintingInputs, count: Float64, generated: int, settings: FusingSettings) -> None:
    """Log the number of generated nodes; warn where there is none."""
    fitted = int(inputs.fitted.sum())
    logger.log(
        logging.INFO if generated else logging.WARNING,
        "%s for %d subjects, of %.1f missing neighbours expected (mean %.2f; cap: %s)",
        f"{generated} nodes" if generated else "no node is generated",
        fitted,
        count[inputs.fitted].sum(),
        count[inputs.fitted].mean() if fitted else 0.0,
        "none" if settings.cap is None else f"{settings.cap:g} a subject",
    )


def _new_nodes(
    inputs: InpaintingInputs, generator: NodeGenerator, parents: IntArray, settings: FusingSettings
) -> Generated:
    if settings.nodes == "random" or len(parents) == 0:
        return random_nodes(inputs, parents)
    new_nodes = generator.draw(parents)
    _require_finite(new_nodes.features, tuple(inputs.subjects[parent] for parent in parents))
    return new_nodes


def _require_finite(outputs: FloatArray, subjects: tuple[str, ...]) -> None:
    """Refuse outputs (s,) or (s, d) of a generator for the subjects (s) that are not finite."""
    finite = np.isfinite(outputs) if outputs.ndim == 1 else np.isfinite(outputs).all(axis=1)
    if not finite.all():
        raise UserError(
            f"subject {subjects[int(np.argmin(finite))]!r}: expected finite numbers from the trained generator, found "
            "NaN or infinity, so its training diverged; lower `learning_rate` under `inpainting:` and run again."
        )


def _parents(inputs: InpaintingInputs, count: Float64, settings: FusingSettings, max_generated: int | None) -> IntArray:
    """(g,) parent of each new node, ascending."""
    number = np.zeros(len(inputs.subjects), dtype=np.int64)
    for institution in range(len(inputs.institutions)):
        members = inputs.members(institution)
        tie_order = inputs.streams.numpy("allotment", inputs.part, institution).permutation(len(members))
        number[members] = allot(
            count[members],
            rounding=settings.rounding,
            max_generated=max_generated,
            cap=settings.cap,
            tie_order=tie_order,
        )
    return np.repeat(np.arange(len(number)), number)


def _joined(inputs: InpaintingInputs, edges: Edges, number: int) -> tuple[IntArray, IntArray, Float32]:
    """The subjects' edges, new edges in both directions, and self-loops of new nodes."""
    graph = inputs.graph
    new = symmetric(edges, graph.nodes + number)
    loop = graph.nodes + np.arange(number if inputs.graph_settings.self_weight > 0 else 0)
    row = np.concatenate([graph.row, new.row, loop])
    column = np.concatenate([graph.column, new.column, loop])
    loops = np.full(len(loop), inputs.graph_settings.self_weight)
    weight = np.concatenate([graph.weight, new.weight.astype(np.float32), loops.astype(np.float32)])
    order = np.lexsort((column, row))
    return row[order], column[order], weight[order]
