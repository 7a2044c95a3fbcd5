"""Public data sets of graphs (Morris et al. 2020): read, and written as an artefact."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.io import read_tu_data, read_txt_array
from torch_geometric.utils import one_hot

from brainfed.cohort.quality import coverage_without_scan, quality_without_scan
from brainfed.graphs._connectome import contents
from brainfed.runtime import Float32, IntArray, UserError, write_arrays, write_table


@dataclass(frozen=True)
class DataSet:
    """The graphs of one data set.

    Attributes:
        sizes: (n,) numbers of nodes.
        nodes: (N, d) one-hot labels, or one-hot degrees where nodes have no label.
        edges: (n,) numbers of edges, both directions counted.
        source: (E,) number of a node inside its graph; without self-loops and repeated edges.
        target: (E,) the same.
        by_degree: whether the features are degrees.
        classes: number of classes.
    """

    name: str
    sizes: IntArray
    nodes: Float32
    edges: IntArray
    source: IntArray
    target: IntArray
    by_degree: bool
    classes: int

    def __len__(self) -> int:
        """Number of graphs n."""
        return len(self.sizes)


def read_data_set(folder: Path | str, name: str, graphs: int) -> DataSet:
    """Read one data set with PyTorch Geometric.

    Raises:
        UserError: a file is malformed, or the files contradict each other.
    """
    where = f"{Path(folder) / name}_*.txt"
    try:
        data, slices, counts = read_tu_data(str(folder), name)
    except (ValueError, RuntimeError, IndexError) as error:
        raise UserError(
            f"{where}: expected a data set in TU format, found files that cannot be read ({error}); fetch it again."
        ) from error
    edge_start = slices["edge_index"].numpy()
    unlabelled = data.x is None or counts["num_node_labels"] == 0
    graph_of = read_txt_array(str(Path(folder) / f"{name}_graph_indicator.txt"), dtype=torch.long) - 1
    sizes = torch.bincount(graph_of).numpy()
    edges = np.diff(edge_start)
    edges = np.concatenate([edges, np.zeros(max(0, len(sizes) - len(edges)), dtype=np.int64)])
    source, target = data.edge_index.numpy()
    _check(where, sizes, edges, source, target, graphs)
    if unlabelled:
        start = np.repeat(np.cumsum(sizes) - sizes, edges)
        degree = np.bincount(start + source, minlength=int(sizes.sum()))
        nodes = one_hot(torch.from_numpy(degree)).numpy()
    else:
        nodes = data.x[:, counts["num_node_attributes"] :].numpy()
    if len(nodes) != sizes.sum():
        raise UserError(
            f"{Path(folder) / name}_node_labels.txt: expected a line for each of {sizes.sum()} nodes, found "
            f"{len(nodes)}; fetch the data set again."
        )
    classes = len(data.y.unique())
    return DataSet(name, sizes.astype(np.int64), nodes.astype(np.float32), edges, source, target, unlabelled, classes)


def _check(where: str, sizes: IntArray, edges: IntArray, source: IntArray, target: IntArray, graphs: int) -> None:
    """Refuse graphs that do not fit their labels, and edges between two graphs."""
    if len(sizes) != graphs:
        raise UserError(
            f"{where}: expected {graphs} graphs, as many as there are labels, found {len(sizes)}; fetch the data set "
            "again."
        )
    if not sizes.all():
        raise UserError(
            f"{where}: expected a node in every graph, found none in graph {int(np.argmin(sizes)) + 1}; fetch the data "
            "set again."
        )
    limit = np.repeat(sizes, edges)
    wrong = (source < 0) | (target < 0) | (source >= limit) | (target >= limit)
    if wrong.any():
        graph = int(np.searchsorted(np.cumsum(edges), int(np.argmax(wrong)), side="right")) + 1
        raise UserError(
            f"{where}: expected edges inside of graphs, found one from graph {graph} to another; fetch the data set "
            "again."
        )


def joined(data_sets: Sequence[DataSet]) -> dict[str, NDArray[np.generic]]:
    """The arrays of `samples.GraphSamples` of all data sets, one after the other.

    Node features of different data sets mean different things in the same columns; narrow ones are filled up with
    zeros.
    """
    width = max(data.nodes.shape[1] for data in data_sets)
    nodes = [np.pad(data.nodes, ((0, 0), (0, width - data.nodes.shape[1]))) for data in data_sets]
    sizes = np.concatenate([data.sizes for data in data_sets])
    edges = np.concatenate([data.edges for data in data_sets])
    source = np.concatenate([data.source for data in data_sets]).astype(np.int64)
    return {
        "node_start": np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        "nodes": np.concatenate(nodes),
        "edge_start": np.concatenate([[0], np.cumsum(edges)]).astype(np.int64),
        "source": source,
        "target": np.concatenate([data.target for data in data_sets]).astype(np.int64),
        "weight": np.ones(len(source), dtype=np.float32),
    }


@dataclass(frozen=True)
class GraphFiles:
    """Paths of a cohort of graphs: the graphs, and empty tables of quality and coverage."""

    graphs: str | Path
    quality: str | Path
    coverage: str | Path


def write_graphs(folders: Mapping[str, str], subjects: Mapping[str, Sequence[str]], out: GraphFiles) -> None:
    """Read and write all graphs; the arrays are those of `samples.GraphSamples`.

    Args:
        folders: data set -> folder of its text files.
        subjects: data set -> ids of its graphs, in their order.

    Raises:
        UserError: a data set cannot be read.
    """
    order = sorted(folders, key=lambda name: subjects[name][0])
    data_sets = [read_data_set(folders[name], name, len(subjects[name])) for name in order]
    arrays = joined(data_sets)
    ids = [subject for name in order for subject in subjects[name]]
    described = [
        {
            "name": data.name,
            "graphs": len(data),
            "features": data.nodes.shape[1],
            "by_degree": data.by_degree,
            "classes": data.classes,
        }
        for data in data_sets
    ]
    write_arrays(out.graphs, arrays, {"subjects": ids, "data_sets": described, "crossings": []})
    write_table(out.quality, quality_without_scan(ids, _checksums(ids, arrays), {}))
    write_table(out.coverage, coverage_without_scan())


def _checksums(ids: Sequence[str], arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """Graph -> a checksum that covers its id: equal graphs are different molecules, not one person twice."""
    return {
        subject: hashlib.sha256(subject.encode() + content).hexdigest()
        for subject, content in zip(ids, contents(arrays), strict=True)
    }
