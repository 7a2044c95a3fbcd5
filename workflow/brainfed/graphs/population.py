"""The population graph: subjects as nodes, similarity as edges (FedNI Sec. III-A).

Transductive (everybody fits): the k most similar of each row, symmetric by maximum, plus self-loops.
Inductive (a training mask): projection, sigma and edges come from the training subjects alone; each
test subject attaches by itself, messages run to it only, so no other row depends on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.crossings import crossings_of
from brainfed.graphs.embedding import (
    Embedding,
    FloatArray,
    as_they_are,
    fit_projection,
    fit_scaled_projection,
    fit_z_scores,
)
from brainfed.graphs.neighbours import Edges, nearest, symmetric
from brainfed.graphs.rfe import selected_features, selecting_projection
from brainfed.graphs.settings import GraphSettings
from brainfed.graphs.similarity import BLOCK_ENTRIES, Nodes, mean_pairwise_distance
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

COMPARED_WHOLE = 1 << 28
"""Numbers that the embedding `none` holds at most, 2 GiB."""

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class PopulationGraph:
    """A weighted adjacency over n subjects: row i receives from column j; self-loops included.

    Attributes:
        row: edges' receivers; entries are in order of (row, column).
        column: edges' senders.
        weight: float32, positive.
        embedding: float32 (n, min(embedding_dimensions, d)), columns beyond the fitted ones are 0; (n, d) where
            features are compared as they are.
        sigma: the kernel's width, one for each institution under scope `local`, else one in all; 0 where
            fewer than two subjects fit it.
        cut: under scope `global_cut` the edges between institutions that were removed, in the same order; else None.
        selected: under the embedding `rfe` the features that it takes, a list for each sigma; empty where the labels
            lack a class and principal components stand in. Else none.
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


@dataclass(frozen=True)
class FittedPart:
    """Subjects that are built into one graph, and what they are compared by.

    Attributes:
        members: their positions, ascending.
        projection: from features to the embedding, fitted to those of them that may be fitted on.
        sigma: mean pairwise distance of the same, times the setting `sigma`.
    """

    members: IntArray
    projection: Embedding
    sigma: float


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
    """Build the graph of one cohort, or of one fold.

    Args:
        features: (n, d), finite.
        institution: (n,) 0 ... M - 1.
        site: (n,) codes, -1 unknown.
        sex: (n,) codes, -1 unknown.
        age: (n,) years, NaN unknown.
        settings: k, phenotypes, scope and the like.
        streams: for `shuffle` only.
        training: (n,) who may be fitted on: the inductive protocol; None: everybody, transductive.
        labels: (n,) in {0, 1}, -1 where tested: for the embedding `rfe` only.
        block_entries: how many pairs may be held at once; the result does not depend on it.
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


def fit_parts(
    features: FloatArray,
    institution: IntArray,
    fitted: NDArray[np.bool_],
    settings: GraphSettings,
    block_entries: int = BLOCK_ENTRIES,
    selected: Sequence[IntArray] = (),
) -> tuple[NDArray[np.float64], list[FittedPart]]:
    """Embedding (n, min(embedding_dimensions, d)) of all subjects, and what made it: one part, or each institution.

    It is (n, d) for the embedding `none`. Columns beyond the fitted ones are 0. Only those in the mask `fitted` (n,)
    enter projection and sigma. The embedding `rfe` takes the features `selected`, one list a part; principal components
    where it is empty.

    Raises:
        UserError: the embedding `none` of more than `COMPARED_WHOLE` numbers; correlations of principal components.
    """
    embedding = np.zeros((len(features), _width(features, settings)))
    parts = []
    groups = _parts(institution, settings)
    kept = selected if settings.embedding == "rfe" else [np.zeros(0, dtype=np.int64)] * len(groups)
    for members, columns in zip(groups, kept, strict=True):
        known = members[fitted[members]]
        projection = _fitted(_rows(features, known), columns, settings)
        projected = projection(_rows(features, members))
        embedding[members, : projected.shape[1]] = projected
        sigma = settings.sigma * mean_pairwise_distance(embedding[known], block_entries, settings.distance)
        parts.append(FittedPart(members, projection, sigma))
    return embedding, parts


def _width(features: FloatArray, settings: GraphSettings) -> int:
    """Columns of the embedding of features (n, d)."""
    subjects, columns = map(int, features.shape)
    if settings.embedding != "none":
        return min(settings.embedding_dimensions, columns)
    if features.size > COMPARED_WHOLE:
        raise UserError(
            f"graph.embedding: expected at most {COMPARED_WHOLE:,} numbers to compare as they are, found {subjects:,} "
            f"subjects of {columns:,} features; choose pca or rfe, or keep fewer features (features.selection: rfe)."
        )
    return columns


def _fitted(known: FloatArray, columns: IntArray, settings: GraphSettings) -> Embedding:
    """What takes features to the embedding, fitted to the subjects `known` (m, d); `columns` are those of `rfe`."""
    if settings.embedding == "none":
        return fit_z_scores(known) if settings.scaling == "columns" else as_they_are
    if len(columns):
        return selecting_projection(known, columns)
    if settings.distance == "correlation":
        raise UserError(
            "graph.distance: expected training labels of both classes behind every graph with embedding rfe and "
            "distance correlation, found a graph without (an institution that is left out?); choose embedding none."
        )
    fit = fit_scaled_projection if settings.scaling == "columns" else fit_projection
    return fit(known, settings.embedding_dimensions)


def _rows(features: FloatArray, positions: IntArray) -> FloatArray:
    """The rows at ascending `positions`; all of them are not copied."""
    return features if len(positions) == len(features) else features[positions]


def _selected(
    features: FloatArray,
    institution: IntArray,
    fitted: NDArray[np.bool_],
    labels: IntArray | None,
    settings: GraphSettings,
) -> tuple[IntArray, ...]:
    """The features of the embedding `rfe`, one list a part; none for principal components."""
    if settings.embedding != "rfe":
        return ()
    if labels is None:
        raise ValueError("the embedding rfe needs training labels")
    known = (members[fitted[members]] for members in _parts(institution, settings))
    return tuple(selected_features(features[own], labels[own], settings.embedding_dimensions) for own in known)


def _parts(institution: IntArray, settings: GraphSettings) -> list[IntArray]:
    """Positions of the subjects that are built into one graph."""
    if settings.scope == "local":
        return [np.flatnonzero(institution == index) for index in range(int(institution.max()) + 1)]
    return [np.arange(len(institution))]


def _part_edges(
    nodes: Nodes, known: IntArray, apart: IntArray, sigma: float, settings: GraphSettings, entries: int
) -> list[Edges]:
    """Edges among those who fit, then the edges by which each of the others attaches to them."""
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
    """Nodes that fit trade places inside their institution; the others keep their own row."""
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
    """All edges of the pieces, in order of (row, column)."""
    row = np.concatenate([piece.row for piece in pieces])
    column = np.concatenate([piece.column for piece in pieces])
    weight = np.concatenate([piece.weight for piece in pieces])
    order = np.lexsort((column, row))
    return Edges(row[order], column[order], weight[order])
