"""Bytes of graphs, by which equal ones are found."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray


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
