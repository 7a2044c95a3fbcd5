"""Graphs of a data set in TU format, read line by line."""

from pathlib import Path

import numpy as np


def read_plainly(raw: Path, name: str) -> list[tuple[np.ndarray, set[tuple[int, int]]]]:
    """Of every graph the one-hot labels (or degrees) of its nodes, and its edges as pairs of numbers inside it."""

    def lines(part: str) -> list[str]:
        return (raw / f"{name}_{part}.txt").read_text().split("\n")[:-1]

    graph_of = [int(line) - 1 for line in lines("graph_indicator")]
    first: dict[int, int] = {}
    for node, graph in enumerate(graph_of):
        first.setdefault(graph, node)
    edges: list[set[tuple[int, int]]] = [set() for _ in first]
    for line in lines("A"):
        one, other = (int(number) - 1 for number in line.split(","))
        if one != other:
            graph = graph_of[one]
            edges[graph].add((one - first[graph], other - first[graph]))
    if (raw / f"{name}_node_labels.txt").exists():
        values = [int(line) for line in lines("node_labels")]
        lowest = min(values)
    else:
        lowest = 0
        values = [sum(one == node - first[graph] for one, _ in edges[graph]) for node, graph in enumerate(graph_of)]
    width = max(values) - lowest + 1
    nodes = np.zeros((len(values), width), dtype=np.float32)
    for node, value in enumerate(values):
        nodes[node, value - lowest] = 1
    return [(nodes[[node for node, own in enumerate(graph_of) if own == graph]], edges[graph]) for graph in first]
