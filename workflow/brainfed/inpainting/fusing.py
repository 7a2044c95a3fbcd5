"""Join generated nodes to the population graph (FedNI Sec. III-B.2): what the classifier is trained on.

A generated node finds its neighbours as a subject does (FedNI Sec. III-A), among the subjects of its own
institution that may be learnt from. Edges among subjects stay as they are.
"""

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours import Edges, nearest, symmetric
from brainfed.graphs.population import fit_parts
from brainfed.graphs.settings import GraphSettings
from brainfed.graphs.similarity import Nodes, row_blocks, similarity
from brainfed.inpainting.allotment import allot
from brainfed.inpainting.fused import FusedGraph
from brainfed.inpainting.inputs import Generated, InpaintingInputs, NodeGenerator
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.errors import UserError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

PAIR_BLOCK = 64
"""So many pairs (node, parent) are compared at once, all with all: only the diagonal is wanted."""


def fuse(inputs: InpaintingInputs, generator: NodeGenerator, settings: FusingSettings, most: int) -> FusedGraph:
    """Ask the generator for missing neighbours and join them to the subjects.

    Args:
        inputs: subjects and their graph; only those that are `fitted` get generated neighbours.
        generator: under `nodes: random` it says how many, not what they look like.
        settings: cap, rounding, edges and nodes.
        most: generated nodes of one subject.

    Raises:
        UserError: the generator answers with a number that is not finite.
    """
    count = generator.counts()
    _require_finite(count, inputs.subjects)
    parents = _parents(inputs, count, settings, most)
    if settings.nodes == "random" or len(parents) == 0:
        born = _random_nodes(inputs, parents)
    else:
        born = generator.draw(parents)
        _require_finite(born.features, tuple(inputs.subjects[parent] for parent in parents))
    if settings.edges == "binary":
        found = Edges(len(inputs.subjects) + np.arange(len(parents)), parents, np.ones(len(parents)))
    elif settings.nodes == "random":
        found = _random_edges(inputs, parents)
    else:
        found = _similar_edges(inputs, parents, born)
    row, column, weight = _joined(inputs, found, len(parents))
    institution = inputs.institution[parents]
    return FusedGraph(row, column, weight, born.features, institution, parents, born.sex, born.age, count)


def _require_finite(answers: NDArray[np.float32] | FloatArray, subjects: tuple[str, ...]) -> None:
    """Refuse answers (s,) or (s, d) about the subjects (s) that are not finite."""
    finite = np.isfinite(answers) if answers.ndim == 1 else np.isfinite(answers).all(axis=1)
    if not finite.all():
        raise UserError(
            f"subject {subjects[int(np.argmin(finite))]!r}: expected finite numbers from the trained generator, found "
            "NaN or infinity, so its training diverged; lower `learning_rate` under `inpainting:` and run again."
        )


def _parents(inputs: InpaintingInputs, count: FloatArray, settings: FusingSettings, most: int) -> IntArray:
    """(g,) whose missing neighbour each new node is, ascending."""
    number = np.zeros(len(inputs.subjects), dtype=np.int64)
    for institution in range(len(inputs.institutions)):
        members = inputs.members(institution)
        lot = inputs.streams.numpy("allotment", inputs.part, institution).permutation(len(members))
        number[members] = allot(count[members], rounding=settings.rounding, most=most, cap=settings.cap, lot=lot)
    return np.repeat(np.arange(len(number)), number)


def _random_nodes(inputs: InpaintingInputs, parents: IntArray) -> Generated:
    """Random inpainting (FedNI Fig. 4): each feature normal as in the institution, sex and age those of a member."""
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


def _random_edges(inputs: InpaintingInputs, parents: IntArray) -> Edges:
    """From each new node to its parent and k - 1 other subjects; weights are drawn from those among subjects."""
    graph, home = inputs.graph, inputs.institution[parents]
    pieces = []
    for institution in np.unique(home):
        members = inputs.members(institution)
        random = inputs.streams.numpy("random-edges", inputs.part, int(institution))
        real = (graph.row != graph.column) & np.isin(graph.row, members) & np.isin(graph.column, members)
        weights = graph.weight[real].astype(np.float64) if real.any() else np.ones(1)
        size = min(inputs.graph_settings.k, len(members))
        for node in np.flatnonzero(home == institution):
            others = random.choice(members[members != parents[node]], size - 1, replace=False)
            row = np.full(size, len(inputs.subjects) + node)
            pieces.append(Edges(row, np.append(others, parents[node]), random.choice(weights, size)))
    return _together(pieces)


def _similar_edges(inputs: InpaintingInputs, parents: IntArray, born: Generated) -> Edges:
    """From each new node to the neighbours that the rule of the population graph gives it, and to its parent."""
    settings, home = inputs.graph_settings, inputs.institution[parents]
    embedding, parts = fit_parts(inputs.features, inputs.institution, inputs.fitted, settings, selected=inputs.selected)
    part_of = {index: parts[index if settings.scope == "local" else 0] for index in np.unique(home).tolist()}
    placed = np.zeros((len(parents), embedding.shape[1]))
    for index, part in part_of.items():
        projected = part.projection(born.features[home == index])
        placed[home == index, : projected.shape[1]] = projected
    nodes = Nodes(np.concatenate([embedding, placed]), _phenotypes(inputs, parents, born))
    pieces = []
    for index, part in part_of.items():
        mine = np.flatnonzero(home == index)
        new = len(inputs.subjects) + mine
        pieces.append(_neighbours(nodes, new, inputs.members(index), parents[mine], part.sigma, settings))
    return _together(pieces)


def _phenotypes(inputs: InpaintingInputs, parents: IntArray, born: Generated) -> dict[str, IntArray | FloatArray]:
    """Those that the graph compares, of subjects and new nodes; a new node is from its parent's site."""
    compared: dict[str, IntArray | FloatArray] = {
        "site": np.append(inputs.site, inputs.site[parents]),
        "sex": np.append(inputs.sex, born.sex),
        "age": np.append(inputs.age, born.age),
    }
    return {str(name): compared[name] for name in inputs.graph_settings.phenotypes}


def _neighbours(
    nodes: Nodes, new: IntArray, existing: IntArray, parents: IntArray, sigma: float, settings: GraphSettings
) -> Edges:
    """Edges from nodes `new` (g,) to the k most similar of `existing`, and to `parents` (g,).

    New nodes are no neighbours of each other: they lie close together, and would crowd out the subjects.
    """
    real = nearest(nodes.take(new), nodes.take(existing), sigma, k=settings.k, age_gap=settings.age_gap)
    felt = real.weight.astype(np.float32) > 0
    row, column, weight = real.row[felt], existing[real.column[felt]], real.weight[felt]

    smallest = np.full(len(new), np.inf)
    np.minimum.at(smallest, row, weight)
    smallest[np.isinf(smallest)] = 1
    linked = np.zeros(len(new), dtype=np.bool_)
    linked[row[column == parents[row]]] = True
    apart = np.flatnonzero(~linked)
    own = _paired_similarity(nodes.take(new[apart]), nodes.take(parents[apart]), sigma, settings.age_gap)
    own = np.where(own.astype(np.float32) > 0, own, smallest[apart])
    return Edges(np.append(new[row], new[apart]), np.append(column, parents[apart]), np.append(weight, own))


def _paired_similarity(left: Nodes, right: Nodes, sigma: float, age_gap: float) -> FloatArray:
    """S o S~ (g,) of each of `left` (g) with its own of `right` (g)."""
    found = np.zeros(len(left))
    for block in row_blocks(len(left), 1, PAIR_BLOCK):
        found[block] = np.diagonal(similarity(left.take(block), right.take(block), sigma, age_gap))
    return found


def _together(pieces: list[Edges]) -> Edges:
    if not pieces:
        return Edges(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Edges(
        np.concatenate([piece.row for piece in pieces]),
        np.concatenate([piece.column for piece in pieces]),
        np.concatenate([piece.weight for piece in pieces]),
    )


def _joined(inputs: InpaintingInputs, found: Edges, number: int) -> tuple[IntArray, IntArray, NDArray[np.float32]]:
    """The subjects' edges, those found in both directions, and self-loops of the new nodes."""
    graph = inputs.graph
    new = symmetric(found, graph.nodes + number)
    loop = graph.nodes + np.arange(number if inputs.graph_settings.self_weight > 0 else 0)
    row = np.concatenate([graph.row, new.row, loop])
    column = np.concatenate([graph.column, new.column, loop])
    loops = np.full(len(loop), inputs.graph_settings.self_weight)
    weight = np.concatenate([graph.weight, new.weight.astype(np.float32), loops.astype(np.float32)])
    order = np.lexsort((column, row))
    return row[order], column[order], weight[order]
