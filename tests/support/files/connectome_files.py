"""Files of connectivity and of connectomes for tests."""

from pathlib import Path

import numpy as np

from brainfed.graphs import ConnectomeSettings, read_connectivity, write_connectomes
from brainfed.runtime import write_arrays
from brainfed.samples import GraphSamples, read_graph_samples


def ids(subjects: int) -> list[str]:
    return [f"s{number:02d}" for number in range(subjects)]


def correlations(subjects: int = 7, regions: int = 6, seed: int = 0) -> np.ndarray:
    """(n, R (R - 1) / 2) entries between -1 and 1, no two of a subject with one absolute value."""
    drawn = np.random.default_rng(seed).standard_normal((subjects, regions * (regions - 1) // 2))
    return np.tanh(drawn / 2).astype(np.float32)


def write_features(path: Path, features: np.ndarray, regions: int, connectivity: str = "pearson") -> Path:
    metadata = {
        "subjects": ids(len(features)),
        "regions": [f"region-{number}" for number in range(regions)],
        "settings": {"connectivity": connectivity},
        "crossings": [],
    }
    write_arrays(path, {"features": features}, metadata)
    return path


def built(
    folder: Path, features: np.ndarray, regions: int, connectivity: str = "pearson", entries: int = 2**21, **settings
) -> GraphSamples:
    """The graphs of these features, by way of their files."""
    path = write_features(folder / "features.safetensors", features, regions, connectivity)
    measured = read_connectivity(str(path), set(ids(len(features))))
    write_connectomes(folder / "connectomes.safetensors", measured, ConnectomeSettings(**settings), {}, entries)
    return read_graph_samples(folder / "connectomes.safetensors", ids(len(features)))


def edges_of(graphs: GraphSamples, subject: int) -> dict[tuple[int, int], float]:
    """(source, target) -> weight of one graph."""
    part = slice(*graphs.edge_start[subject : subject + 2])
    pairs = zip(graphs.source[part].tolist(), graphs.target[part].tolist(), strict=True)
    return dict(zip(pairs, graphs.weight[part].tolist(), strict=True))
