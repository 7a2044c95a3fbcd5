"""Join generated nodes to the population graph by their edges: the classifier's training graph."""

import logging

import numpy as np

from brainfed.graphs.neighbours import Edges, Nodes, nearest, row_blocks, similarity, symmetric
from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting.inputs import FusedGraph, Generated, InpaintingInputs, NodeGenerator
from brainfed.inpainting.new_nodes import (
    allot,
    institution_means,
    place,
    random_nodes,
    shuffled_features,
    true_neighbours,
)
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.arrays import BoolArray, Float32, Float64, FloatArray, IntArray
from brainfed.runtime.errors import UserError

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


def _joined(inputs: InpaintingInputs, found: Edges, number: int) -> tuple[IntArray, IntArray, Float32]:
    """The subjects' edges, new edges in both directions, and self-loops of new nodes."""
    graph = inputs.graph
    new = symmetric(found, graph.nodes + number)
    loop = graph.nodes + np.arange(number if inputs.graph_settings.self_weight > 0 else 0)
    row = np.concatenate([graph.row, new.row, loop])
    column = np.concatenate([graph.column, new.column, loop])
    loops = np.full(len(loop), inputs.graph_settings.self_weight)
    weight = np.concatenate([graph.weight, new.weight.astype(np.float32), loops.astype(np.float32)])
    order = np.lexsort((column, row))
    return row[order], column[order], weight[order]
