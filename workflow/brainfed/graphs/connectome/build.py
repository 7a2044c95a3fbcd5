"""The artefact of connectomes: one graph a subject, written in blocks of subjects."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.connectome.edges import adjacency, connections, matrices, strongest
from brainfed.graphs.connectome.settings import ConnectomeSettings, require_connections
from brainfed.runtime.artefacts import writing_blocks
from brainfed.runtime.errors import UserError
from brainfed.runtime.mapped import map_array

Float32 = NDArray[np.float32]
IntArray = NDArray[np.int64]

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

    The arrays are those of `samples.graph_samples.GraphSamples`. Edges are in order of (source, target).

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
            held = adjacency(strongest(measured.connections(block), regions, settings), regions)
            _, source, target = np.nonzero(held)
            append("nodes", square.reshape(-1, regions))
            append("source", source)
            append("target", target)
            append("weight", square[held])


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
    subject, found = measured.subjects[empty[least]], float(largest[least])
    if found == 0:
        return (
            f"{measured.path}: expected a connection other than 0 in every subject, found none in {subject!r}, whose "
            "regions have no signal; leave the subject out of the phenotype table, or set "
            "`exclude.max_constant_regions` of the cohort."
        )
    return (
        f"connectomes.threshold: expected an edge in every connectome, found none in {len(empty)} of "
        f"{len(measured.subjects)} subjects at {settings.threshold:g} (the largest entry of {subject!r} is "
        f"{found:.3g}); lower it, or choose `edges: proportional`."
    )
