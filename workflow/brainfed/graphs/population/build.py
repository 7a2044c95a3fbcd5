"""The population graph: subjects as nodes, similarity as edges (FedNI Sec. III-A).

Transductive (all subjects fit): the k most similar subjects of each row, symmetric by maximum, plus self-loops.
Inductive (a training mask): training subjects alone fit projection, sigma and edges. Each test subject
attaches by itself and receives messages only, so no other row depends on it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges, nearest, symmetric
from brainfed.graphs.neighbours.similarity import BLOCK_ENTRIES, Nodes
from brainfed.graphs.population.crossings import crossings_of
from brainfed.graphs.population.embedding import FloatArray
from brainfed.graphs.population.fitting import fit_parts, parts_of
from brainfed.graphs.population.rfe import selected_features
from brainfed.graphs.settings import GraphSettings
from brainfed.runtime.streams import Streams

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PopulationGraph:
    """A weighted adjacency over n subjects: row i receives from column j; self-loops are included.

    Attributes:
        row: receivers of edges; entries are in order of (row, column).
        column: senders of edges.
        weight: float32, positive.
        embedding: float32 (n, min(embedding_dimensions, d)), columns beyond the fitted ones are 0; (n, d) under the
            embedding `none`.
        sigma: widths of the kernel, one for each institution under scope `local`, else one; 0 for fewer than two
            subjects in the fit.
        cut: removed edges between institutions under scope `global_cut`, in the same order; else None.
        selected: features of the embedding `rfe`, a list for each sigma; empty if the labels lack a class and
            principal components replace them. Else none.
        crossings: rows of the ledger; none under scope `local`.
    """

    row: IntArray
    column: IntArray
    weight: NDArray[np.float32]
    embedding: NDArray[np.float32]
    sigma: tuple[float, ...]
    cut: Edges | None = None
    selected: tuple[IntArray, ...] = ()
    crossings: tuple[dict[str, int | str], ...] = ()


def build_graph(
    features: FloatArray,
    institution: IntArray,
    *,
    site: IntArray,
    sex: IntArray,
    age: NDArray[np.float64],
    settings: GraphSettings,
    streams: Streams,
    training: NDArray[np.bool_] | None = None,
    labels: IntArray | None = None,
    block_entries: int = BLOCK_ENTRIES,
) -> PopulationGraph:
    """Build the graph A of one cohort, or of one fold (FedNI Sec. III-A): S o S~, k largest a row, plus self-loops.

    Args:
        features: (n, d), finite.
        institution: (n,) 0 ... M - 1.
        site: (n,) codes, -1 unknown.
        sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
        settings: settings of the graph.
        streams: for `shuffle` only.
        training: (n,) mask of the training subjects (inductive protocol); None: all subjects (transductive).
        labels: (n,) in {0, 1}, -1 where tested: for the embedding `rfe` only.
        block_entries: largest number of pairs in one block; it does not affect the result.
    """
    count = len(features)
    fitted = np.ones(count, dtype=np.bool_) if training is None else training
    compared: dict[str, IntArray | NDArray[np.float64]] = {"site": site, "sex": sex, "age": age}
    phenotypes = {str(name): compared[name] for name in settings.phenotypes}
    selected = _selected(features, institution, fitted, labels, settings)
    embedding, parts = fit_parts(features, institution, fitted, settings, block_entries, selected)
    nodes = Nodes.of(embedding, phenotypes, settings.distance)
    pieces: list[Edges] = []
    for part in parts:
        known, apart = part.members[fitted[part.members]], part.members[~fitted[part.members]]
        pieces += _part_edges(nodes, known, apart, part.sigma, settings, block_entries)
    edges = _joined(pieces)
    if settings.shuffle:
        edges = _joined([_shuffled(edges, institution, fitted, streams)])
    cut = None
    if settings.scope == "global_cut":
        inside = institution[edges.row] == institution[edges.column]
        edges, cut = _chosen(edges, inside), _chosen(edges, ~inside)
    edges = _with_self_loops(edges, count, settings.self_weight)
    return PopulationGraph(
        edges.row,
        edges.column,
        edges.weight.astype(np.float32),
        embedding.astype(np.float32),
        tuple(part.sigma for part in parts),
        cut,
        selected,
        crossings_of(features, institution, settings),
    )


def _selected(
    features: FloatArray,
    institution: IntArray,
    fitted: NDArray[np.bool_],
    labels: IntArray | None,
    settings: GraphSettings,
) -> tuple[IntArray, ...]:
    """Features of the embedding `rfe`, one list a part; none for principal components."""
    if settings.embedding != "rfe":
        return ()
    if labels is None:
        raise ValueError("the embedding rfe needs training labels")
    known = (members[fitted[members]] for members in parts_of(institution, settings))
    return tuple(selected_features(features[own], labels[own], settings.embedding_dimensions) for own in known)


def _part_edges(
    nodes: Nodes, known: IntArray, apart: IntArray, sigma: float, settings: GraphSettings, entries: int
) -> list[Edges]:
    """Edges among the fitted subjects, then the edges that attach each of the others to them."""
    fitted = nodes.take(known)
    among = nearest(fitted, None, sigma, k=settings.k, age_gap=settings.age_gap, entries=entries)
    inner = symmetric(among, len(known))
    outer = nearest(nodes.take(apart), fitted, sigma, k=settings.k, age_gap=settings.age_gap, entries=entries)
    return [
        Edges(known[inner.row], known[inner.column], inner.weight),
        Edges(apart[outer.row], known[outer.column], outer.weight),
    ]


def _chosen(edges: Edges, mask: NDArray[np.bool_]) -> Edges:
    return Edges(edges.row[mask], edges.column[mask], edges.weight[mask])


def _shuffled(edges: Edges, institution: IntArray, fitted: NDArray[np.bool_], streams: Streams) -> Edges:
    """Permute the fitted nodes inside their institution; the others keep their own row."""
    place = np.arange(len(institution))
    for index in range(int(institution.max()) + 1):
        members = np.flatnonzero((institution == index) & fitted)
        place[members] = streams.numpy("shuffled-edges", index).permutation(members)
    return Edges(place[edges.row], place[edges.column], edges.weight)


def _with_self_loops(edges: Edges, count: int, weight: float) -> Edges:
    if weight == 0:
        return _joined([edges])
    nodes = np.arange(count)
    return _joined([edges, Edges(nodes, nodes, np.full(count, weight))])


def _joined(pieces: list[Edges]) -> Edges:
    """Edges of all pieces, in order of (row, column)."""
    row = np.concatenate([piece.row for piece in pieces])
    column = np.concatenate([piece.column for piece in pieces])
    weight = np.concatenate([piece.weight for piece in pieces])
    order = np.lexsort((column, row))
    return Edges(row[order], column[order], weight[order])
