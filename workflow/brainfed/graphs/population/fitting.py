"""Fit the embedding of subjects and sigma of a population graph (FedNI Sec. III-A)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.similarity import BLOCK_ENTRIES, mean_pairwise_distance
from brainfed.graphs.population.embedding import (
    Embedding,
    FloatArray,
    as_they_are,
    fit_projection,
    fit_scaled_projection,
    fit_z_scores,
)
from brainfed.graphs.population.rfe import selecting_projection
from brainfed.graphs.settings import GraphSettings
from brainfed.runtime.errors import UserError

COMPARED_WHOLE = 1 << 28
"""Largest size of the embedding `none`, 2 GiB."""

IntArray = NDArray[np.int64]


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
    fitted: NDArray[np.bool_],
    settings: GraphSettings,
    block_entries: int = BLOCK_ENTRIES,
    selected: Sequence[IntArray] = (),
) -> tuple[NDArray[np.float64], list[FittedPart]]:
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
    for members, columns in zip(groups, kept, strict=True):
        known = members[fitted[members]]
        projection = _fitted(_rows(features, known), columns, settings)
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
