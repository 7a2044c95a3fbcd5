"""The population graph: subjects as nodes, similarity as edges (FedNI Sec. III-A); its crossings and homophily."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from brainfed.federation import Ledger, columns, record_pool
from brainfed.graphs._embedding import (
    Embedding,
    as_they_are,
    fit_projection,
    fit_scaled_projection,
    fit_z_scores,
    selected_features,
    selecting_projection,
)
from brainfed.graphs._neighbours import BLOCK_ENTRIES, Edges, Nodes, mean_pairwise_distance, nearest, symmetric
from brainfed.graphs._settings import GraphSettings
from brainfed.runtime import BoolArray, Float32, Float64, FloatArray, IntArray, Streams, UserError

# Data that cross institutions for one graph over all subjects: all inputs of an edge.


CROSSES = {"features": ("subjects", "features")} | dict.fromkeys(("site", "sex", "age", "labels"), ("subjects",))


def crossings_of(
    features: FloatArray, institution: IntArray, settings: GraphSettings
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger; none under scope `local`, where every institution builds its own graph.

    Other scopes send the features, the compared phenotypes, and under the embedding `rfe` the labels that select its
    features. Cutting edges between institutions afterwards (`global_cut`) does not change this.

    Args:
        features: (n, d).
        institution: (n,) codes.
        settings: settings of the graph, with known phenotypes only.
    """
    codes, counts = np.unique(institution, return_counts=True)
    if settings.scope == "local" or len(codes) == 1:
        return ()
    ledger = Ledger(CROSSES, {"features": features.shape[1]}, "graph")
    labels = ("labels",) if settings.embedding == "rfe" else ()
    sent = {"features": (features.shape[1:], features.itemsize)} | columns(*settings.phenotypes, *labels)
    record_pool(ledger, dict(zip(codes.tolist(), counts.tolist(), strict=True)), sent)
    return ledger.rows()


# Fit the embedding of subjects and sigma of a population graph (FedNI Sec. III-A).

COMPARED_WHOLE = 1 << 28
"""Largest size of the embedding `none`, 2 GiB."""


@dataclass(frozen=True)
class FittedPart:
    """Subjects of one graph, with their fitted embedding and sigma.

    Attributes:
        members: positions of the subjects, ascending.
        projection: map from features to the embedding, fitted to the training members.
        sigma: mean pairwise distance of the training members, times the setting `sigma`.
    """

    members: IntArray
    projection: Embedding
    sigma: float


def fit_parts(
    features: FloatArray,
    institution: IntArray,
    fitted: BoolArray,
    settings: GraphSettings,
    block_entries: int = BLOCK_ENTRIES,
    selected: Sequence[IntArray] = (),
) -> tuple[Float64, list[FittedPart]]:
    """Embedding (n, min(embedding_dimensions, d)) of all subjects, and its fitted parts: one, or one an institution.

    The embedding `none` is (n, d). Columns beyond the fitted ones are 0. Only subjects in the mask `fitted` (n,)
    determine projection and sigma. The embedding `rfe` uses the features `selected`, one list a part, or principal
    components for an empty list.

    Raises:
        UserError: the embedding `none` has more than `COMPARED_WHOLE` numbers, or principal components are correlated.
    """
    embedding = np.zeros((len(features), _width(features, settings)))
    parts = []
    groups = parts_of(institution, settings)
    kept = selected if settings.embedding == "rfe" else [np.zeros(0, dtype=np.int64)] * len(groups)
    for members, chosen in zip(groups, kept, strict=True):
        known = members[fitted[members]]
        projection = _fitted(_rows(features, known), chosen, settings)
        projected = projection(_rows(features, members))
        embedding[members, : projected.shape[1]] = projected
        sigma = settings.sigma * mean_pairwise_distance(embedding[known], block_entries, settings.distance)
        parts.append(FittedPart(members, projection, sigma))
    return embedding, parts


def _width(features: FloatArray, settings: GraphSettings) -> int:
    """Number of columns of the embedding of features (n, d)."""
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
    """Fit the map from features to the embedding to subjects `known` (m, d); `columns` are the features of `rfe`."""
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
    """Rows at ascending `positions`, without a copy if these are all rows."""
    return features if len(positions) == len(features) else features[positions]


def parts_of(institution: IntArray, settings: GraphSettings) -> list[IntArray]:
    """Positions of the subjects of each separate graph."""
    if settings.scope == "local":
        return [np.flatnonzero(institution == index) for index in range(int(institution.max()) + 1)]
    return [np.arange(len(institution))]


# The population graph: subjects as nodes, similarity as edges (FedNI Sec. III-A).
#
# Transductive (all subjects fit): the k most similar subjects of each row, symmetric by maximum, plus self-loops.
# Inductive (a training mask): training subjects alone fit projection, sigma and edges. Each test subject
# attaches by itself and receives messages only, so no other row depends on it.


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
    weight: Float32
    embedding: Float32
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
    age: Float64,
    settings: GraphSettings,
    streams: Streams,
    training: BoolArray | None = None,
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
        streams: for `shuffle` only.
        training: (n,) mask of the training subjects (inductive protocol); None: all subjects (transductive).
        labels: (n,) in {0, 1}, -1 where tested: for the embedding `rfe` only.
        block_entries: largest number of pairs in one block; it does not affect the result.
    """
    count = len(features)
    fitted = np.ones(count, dtype=np.bool_) if training is None else training
    compared: dict[str, IntArray | Float64] = {"site": site, "sex": sex, "age": age}
    phenotypes = {str(name): compared[name] for name in settings.phenotypes}
    selected = _selected(features, institution, fitted, labels, settings)
    embedding, parts = fit_parts(features, institution, fitted, settings, block_entries, selected)
    nodes = Nodes.of(embedding, phenotypes, settings.distance)
    pieces: list[Edges] = []
    for part in parts:
        known, apart = part.members[fitted[part.members]], part.members[~fitted[part.members]]
        pieces += _part_edges(nodes, known, apart, part.sigma, settings, block_entries)
    edges = Edges.joined(pieces).in_order()
    if settings.shuffle:
        edges = _shuffled(edges, institution, fitted, streams).in_order()
    cut = None
    if settings.scope == "global_cut":
        inside = institution[edges.row] == institution[edges.column]
        edges, cut = edges.take(inside), edges.take(~inside)
    if settings.self_weight != 0:
        loops = Edges(np.arange(count), np.arange(count), np.full(count, settings.self_weight))
        edges = Edges.joined([edges, loops]).in_order()
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
    features: FloatArray, institution: IntArray, fitted: BoolArray, labels: IntArray | None, settings: GraphSettings
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


def _shuffled(edges: Edges, institution: IntArray, fitted: BoolArray, streams: Streams) -> Edges:
    """Permute the fitted nodes inside their institution; the others keep their own row."""
    place = np.arange(len(institution))
    for index in range(int(institution.max()) + 1):
        members = np.flatnonzero((institution == index) & fitted)
        place[members] = streams.numpy("shuffled-edges", index).permutation(members)
    return Edges(place[edges.row], place[edges.column], edges.weight)


@dataclass(frozen=True)
class Homophily:
    """Homophily of one label on one graph; NaN without an edge between labelled nodes.

    Attributes:
        unweighted: share of the edges (without self-loops) that join equal labels.
        weighted: the same share of their weight.
        chance: expected share for random partners of every row.
        edges: number of directed edges between labelled nodes.
    """

    unweighted: float
    weighted: float
    chance: float
    edges: int


def homophily(graph: PopulationGraph, label: IntArray, group: IntArray | None = None) -> Homophily:
    """Compute the homophily of a label such as diagnosis, sex or site.

    Args:
        label: (n,) codes; -1: unknown, the node's edges do not count.
        group: (n,) institution, if edges never leave one (scopes `local` and `global_cut`): chance is
            that inside an institution, averaged over edges. None: chance over all subjects.
    """
    known = (graph.row != graph.column) & (label[graph.row] >= 0) & (label[graph.column] >= 0)
    row, column, weight = graph.row[known], graph.column[known], graph.weight[known].astype(np.float64)
    if not len(row):
        return Homophily(np.nan, np.nan, np.nan, 0)
    equal = label[row] == label[column]
    groups = np.zeros(len(label), dtype=np.int64) if group is None else group
    expected = np.array([random_pair(label[groups == index]) for index in range(int(groups.max()) + 1)])
    return Homophily(
        unweighted=float(equal.mean()),
        weighted=float(weight[equal].sum() / weight.sum()),
        chance=float(expected[groups[row]].mean()),
        edges=len(row),
    )


def random_pair(label: IntArray) -> float:
    """Probability that two different labelled nodes share their label; NaN with fewer than two."""
    counts = np.bincount(label[label >= 0])
    total = int(counts.sum())
    if total < 2:
        return np.nan
    return float((counts * (counts - 1)).sum() / (total * (total - 1)))
