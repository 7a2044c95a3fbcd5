"""Edges of generated nodes (FedNI Sec. III-B.2): to the parent, and to others of its institution.

A true foreign neighbour has as many neighbours in the institution as a subject of its own: about three under the scope
`global_cut`, its parent among them, and the graph's k under `local`.
"""

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges, nearest
from brainfed.graphs.neighbours.similarity import Nodes, row_blocks, similarity
from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting.fusing.placing import place
from brainfed.inpainting.inputs import Generated, InpaintingInputs
from brainfed.inpainting.settings import FusingSettings

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PAIR_BLOCK = 64
"""Pairs (node, parent) compared at once, all with all; only the diagonal is used."""


def join(inputs: InpaintingInputs, parents: IntArray, new_nodes: Generated, settings: FusingSettings) -> Edges:
    """Edges from new nodes n ... n + g - 1 to subjects, in one direction.

    Args:
        inputs: subjects and their graph.
        parents: (g,) position of each new node's parent.
        new_nodes: their features and phenotypes.
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
    return _concatenated(pieces)


def _similar_edges(inputs: InpaintingInputs, parents: IntArray, new_nodes: Generated, chosen: FusingSettings) -> Edges:
    """From each new node to its parent, and to its neighbours by the population graph's rule."""
    settings, home = inputs.graph_settings, inputs.institution[parents]
    placed = place(inputs, home, new_nodes, inputs.site[parents] if new_nodes.site is None else new_nodes.site)
    pieces = []
    for index, part in placed.parts.items():
        mine = np.flatnonzero(home == index)
        new = len(inputs.subjects) + mine
        members, degree = inputs.members(index), neighbours_of_a_node(inputs, index, chosen)
        weakest = _weakest_edge(inputs, members)
        pieces.append(_neighbours(placed.nodes, new, members, parents[mine], part.sigma, settings, degree, weakest))
    return _concatenated(pieces)


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


def _without_last(row: IntArray, weight: FloatArray, shortened: IntArray, degree: int) -> NDArray[np.bool_]:
    """Mask (e,) of edges (row, weight) without the weakest of each row in `shortened` that has `degree` of them.

    Of equal weights the later edge is the weaker one.
    """
    order = np.lexsort((-np.arange(len(row)), weight, row))
    full = shortened[np.bincount(row, minlength=shortened.max(initial=-1) + 1)[shortened] == degree]
    last = order[np.searchsorted(row[order], full)]
    kept = np.ones(len(row), dtype=np.bool_)
    kept[last] = False
    return kept


def _weakest_edge(inputs: InpaintingInputs, members: IntArray) -> float:
    """The smallest weight of an edge among the institution's subjects; 1 where there is none."""
    inside = _inside(inputs, members)
    return float(inputs.graph.weight[inside].min()) if inside.any() else 1.0


def _inside(inputs: InpaintingInputs, members: IntArray) -> NDArray[np.bool_]:
    """Mask (e,) of the edges between two different subjects of `members`."""
    graph = inputs.graph
    return np.asarray((graph.row != graph.column) & np.isin(graph.row, members) & np.isin(graph.column, members))


def _paired_similarity(left: Nodes, right: Nodes, sigma: float, age_gap: float) -> FloatArray:
    """S o S~ (g,) of each pair of `left` (g) and `right` (g)."""
    found = np.zeros(len(left))
    for block in row_blocks(len(left), 1, PAIR_BLOCK):
        found[block] = np.diagonal(similarity(left.take(block), right.take(block), sigma, age_gap))
    return found


def _concatenated(pieces: list[Edges]) -> Edges:
    if not pieces:
        return Edges(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Edges(
        np.concatenate([piece.row for piece in pieces]),
        np.concatenate([piece.column for piece in pieces]),
        np.concatenate([piece.weight for piece in pieces]),
    )
