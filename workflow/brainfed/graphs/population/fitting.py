"""What a population graph is fitted to: the embedding of its subjects, and sigma (FedNI Sec. III-A)."""

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
"""Numbers that the embedding `none` holds at most, 2 GiB."""

IntArray = NDArray[np.int64]


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


def parts_of(institution: IntArray, settings: GraphSettings) -> list[IntArray]:
    """Positions of the subjects that are built into one graph."""
    if settings.scope == "local":
        return [np.flatnonzero(institution == index) for index in range(int(institution.max()) + 1)]
    return [np.arange(len(institution))]
