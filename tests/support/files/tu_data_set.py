"""Made-up data sets in the text format of the TU Dortmund collection."""

from pathlib import Path

import numpy as np


def write_data_set(
    folder: Path, name: str, graphs: int = 30, *, labels: tuple[int, ...] = (-1, 1), node_labels: int = 3, seed: int = 0
) -> Path:
    """Write `folder/NAME/raw`; graphs of a later class have more edges. Without `node_labels` nodes have none."""
    rng = np.random.default_rng(seed)
    classes = np.resize(labels, graphs)
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    edges, indicator, kinds, first = [], [], [], 1
    for number, label in enumerate(classes, start=1):
        size = int(rng.integers(3, 9))
        density = 0.3 + 0.5 * labels.index(label) / (len(labels) - 1)
        for one in range(size):
            for other in range(one):
                if rng.random() < density or one == other + 1:
                    edges += [(first + one, first + other), (first + other, first + one)]
        indicator += [number] * size
        kinds += list(rng.integers(0, max(1, node_labels), size))
        first += size
    write_lines(raw / f"{name}_A.txt", [f"{one}, {other}" for one, other in edges])
    write_lines(raw / f"{name}_graph_indicator.txt", indicator)
    write_lines(raw / f"{name}_graph_labels.txt", classes)
    if node_labels:
        write_lines(raw / f"{name}_node_labels.txt", kinds)
    return raw


def write_lines(path: Path, values) -> None:
    path.write_text("".join(f"{value}\n" for value in values), encoding="utf-8")
