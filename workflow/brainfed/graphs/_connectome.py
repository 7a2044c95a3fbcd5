"""Graphs of single subjects: regions as nodes, the strongest connections as edges."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs._settings import ConnectomeSettings, require_connections
from brainfed.runtime import BoolArray, Float32, Float64, IntArray, UserError, map_array, writing_blocks


def contents(arrays: Mapping[str, NDArray[Any]]) -> list[bytes]:
    """Bytes of every graph: its node features and edges, in their order.

    Equal graphs whose nodes stand in another order have other bytes.
    """
    node_start, edge_start = arrays["node_start"].tolist(), arrays["edge_start"].tolist()
    return [
        b"".join(
            [
                arrays["nodes"][node_start[row] : node_start[row + 1]].tobytes(),
                arrays["source"][edge_start[row] : edge_start[row + 1]].tobytes(),
                arrays["target"][edge_start[row] : edge_start[row + 1]].tobytes(),
            ]
        )
        for row in range(len(node_start) - 1)
    ]


# The spatial graph of one subject, or of the mean of several, for a convolution in space and time (FGLBC eq. 4).


def positive_correlations(series: Float32) -> Float64:
    """(R, R) matrix A + I of a (T, R) series.

    [choice] A holds the Pearson correlations of the subject's own series that are above 0, without the diagonal. A
    region without signal has no neighbour.
    """
    values = series.astype(np.float64)
    values -= values.mean(axis=0)
    values[:, np.ptp(series, axis=0) == 0] = 0
    norms = np.linalg.norm(values, axis=0)
    values /= np.where(norms > 0, norms, 1)
    adjacency = np.clip(values.T @ values, 0, 1)
    np.fill_diagonal(adjacency, 1)
    return np.asarray(adjacency)


def normalised(adjacency: Float64) -> Float32:
    """(R, R) matrix L^-1/2 (A + I) L^-1/2 of A + I, where L holds its row sums (FGLBC eq. 5)."""
    scale = 1 / np.sqrt(adjacency.sum(axis=1))
    return np.asarray(scale[:, None] * adjacency * scale, dtype=np.float32)


def correlation_adjacency(series: Float32) -> Float32:
    """(R, R) normalised positive correlations of a (T, R) series."""
    return normalised(positive_correlations(series))


# Connectomes as graphs: rows of features as square matrices, and their strongest connections as edges.

DIAGONAL = 1.0
"""Diagonal of correlations, also of transformed ones, where artanh(1) is infinite."""


def connections(features: Float32, regions: int, *, tangent: bool = False) -> Float32:
    """(n, C) entries of the C = R (R - 1) / 2 connections, in `np.triu_indices(R, 1)` order.

    Args:
        features: (n, C); tangent vectors (n, C + R) with the diagonal, whose connections are multiplied by sqrt(2).
        tangent: whether the features are tangent vectors.
    """
    if not tangent:
        return features
    rows, columns = np.triu_indices(regions)
    return features[:, rows != columns] / math.sqrt(2)


def matrices(features: Float32, regions: int, *, tangent: bool = False) -> Float32:
    """(n, R, R) symmetric matrices of rows of features; arguments as of `connections`."""
    square = np.full((len(features), regions, regions), DIAGONAL, dtype=np.float32)
    rows, columns = np.triu_indices(regions, 1)
    entries = connections(features, regions, tangent=tangent)
    square[:, rows, columns] = entries
    square[:, columns, rows] = entries
    if tangent:
        place = np.arange(regions)
        first = place * regions - place * (place - 1) // 2
        square[:, place, place] = features[:, first]
    return square


def strongest(entries: Float32, regions: int, settings: ConnectomeSettings) -> BoolArray:
    """(n, C) mask of the connections (n, C) that are edges: the largest by absolute value, none of them 0."""
    strength = np.abs(entries)
    if settings.edges == "absolute":
        return (strength >= settings.threshold) & (strength > 0)
    kept = settings.most_connections(regions)
    if kept in (0, entries.shape[1]):
        return strength > 0
    least = np.partition(strength, -kept, axis=1)[:, -kept, None]
    above, equal = strength > least, strength == least
    room = kept - above.sum(axis=1, keepdims=True)
    return np.asarray((above | (equal & (np.cumsum(equal, axis=1) <= room))) & (strength > 0))


def adjacency(edges: BoolArray, regions: int) -> BoolArray:
    """(n, R, R) symmetric masks without self-loops of the masks (n, C) of connections."""
    square = np.zeros((len(edges), regions, regions), dtype=np.bool_)
    rows, columns = np.triu_indices(regions, 1)
    square[:, rows, columns] = edges
    square[:, columns, rows] = edges
    return square


# The artefact of connectomes: one graph a subject, written in blocks of subjects.

BLOCK_ENTRIES = 2**21
"""Entries of the square matrices that are in memory at a time."""


@dataclass(frozen=True)
class Connectivity:
    """Features of connectivity in a file.

    Attributes:
        path: of the file, for messages.
        features: (all subjects, C) connections, or (all subjects, C + R) tangent vectors; pages of the file.
        rows: (n,) rows of the subjects.
        subjects: n ids.
        regions: R.
        tangent: whether they are tangent vectors.
    """

    path: str
    features: Float32
    rows: IntArray
    subjects: Sequence[str]
    regions: int
    tangent: bool = False

    def blocks(self, entries: int) -> Iterator[IntArray]:
        """Positions of subjects with at most this many entries of their matrices, at least one subject each."""
        step = max(1, entries // self.regions**2)
        for start in range(0, len(self.subjects), step):
            yield np.arange(start, min(start + step, len(self.subjects)))

    def matrices(self, block: IntArray) -> Float32:
        """(b, R, R) matrices of the subjects at these positions."""
        return matrices(self.features[self.rows[block]], self.regions, tangent=self.tangent)

    def connections(self, block: IntArray) -> Float32:
        """(b, C) connections of the subjects at these positions."""
        return connections(self.features[self.rows[block]], self.regions, tangent=self.tangent)


def read_connectivity(path: str, included: Collection[str]) -> Connectivity:
    """The features of the included subjects, as pages of their file.

    Raises:
        UserError: there is no connection between regions, or the file is damaged.
    """
    file = map_array(path, "features")
    features, regions = file.arrays["features"], len(file.metadata["regions"])
    tangent = file.metadata["settings"]["connectivity"] == "tangent"
    require_connections(regions, path)
    expected = (len(file.subjects), regions * (regions + (1 if tangent else -1)) // 2)
    if features.shape != expected:
        raise UserError(
            f"{path}: expected features {expected} of {regions} regions, found {features.shape}; delete the file and "
            "run again."
        )
    rows = np.array([row for row, subject in enumerate(file.subjects) if subject in included], dtype=np.int64)
    return Connectivity(path, features, rows, [file.subjects[row] for row in rows], regions, tangent)


def write_connectomes(
    path: str | Path,
    measured: Connectivity,
    settings: ConnectomeSettings,
    metadata: Mapping[str, Any],
    block_entries: int = BLOCK_ENTRIES,
) -> None:
    """Write the graphs: regions are nodes with their rows of the matrix, both directions of every edge are stored.

    The arrays are those of `samples.GraphSamples`. Edges are in order of (source, target).

    Raises:
        UserError: a feature is not finite, or a subject has no edge.
    """
    counts = np.zeros(len(measured.subjects), dtype=np.int64)
    for block in measured.blocks(block_entries):
        _require_finite(measured, block)
        counts[block] = strongest(measured.connections(block), measured.regions, settings).sum(axis=1)
    if not counts.all():
        raise UserError(_without_edges(measured, settings, np.flatnonzero(counts == 0)))
    subjects, regions, edges = len(measured.subjects), measured.regions, 2 * int(counts.sum())
    shapes = {
        "node_start": (np.int64, (subjects + 1,)),
        "nodes": (np.float32, (subjects * regions, regions)),
        "edge_start": (np.int64, (subjects + 1,)),
        "source": (np.int64, (edges,)),
        "target": (np.int64, (edges,)),
        "weight": (np.float32, (edges,)),
    }
    with writing_blocks(path, shapes, {**metadata, "subjects": list(measured.subjects)}) as append:
        append("node_start", np.arange(subjects + 1, dtype=np.int64) * regions)
        append("edge_start", np.concatenate([[0], np.cumsum(2 * counts)]))
        for block in measured.blocks(block_entries):
            square = measured.matrices(block)
            edge_masks = adjacency(strongest(measured.connections(block), regions, settings), regions)
            _, source, target = np.nonzero(edge_masks)
            append("nodes", square.reshape(-1, regions))
            append("source", source)
            append("target", target)
            append("weight", square[edge_masks])


def _require_finite(measured: Connectivity, block: IntArray) -> None:
    finite = np.isfinite(measured.features[measured.rows[block]]).all(axis=1)
    if not finite.all():
        subject = measured.subjects[block[int(np.argmin(finite))]]
        raise UserError(
            f"{measured.path}: the values of subject {subject!r} are not finite; delete the file and run again."
        )


def _without_edges(measured: Connectivity, settings: ConnectomeSettings, empty: IntArray) -> str:
    """The sentence about subjects without an edge; their largest entry is named for the one in whom it is smallest."""
    largest = np.abs(measured.connections(empty)).max(axis=1)
    least = int(np.argmin(largest))
    subject, entry = measured.subjects[empty[least]], float(largest[least])
    if entry == 0:
        return (
            f"{measured.path}: expected a connection other than 0 in every subject, found none in {subject!r}, whose "
            "regions have no signal; leave the subject out of the phenotype table, or set "
            "`exclude.max_constant_regions` of the cohort."
        )
    return (
        f"connectomes.threshold: expected an edge in every connectome, found none in {len(empty)} of "
        f"{len(measured.subjects)} subjects at {settings.threshold:g} (the largest entry of {subject!r} is "
        f"{entry:.3g}); lower it, or choose `edges: proportional`."
    )
