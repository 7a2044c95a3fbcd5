"""Settings of connectomes as graphs: regions are nodes, the strongest connections are edges."""

import math
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.errors import UserError
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class ConnectomeSettings:
    """Settings of the edges of a subject's connectome, for methods whose samples are whole graphs."""

    edges: Literal["proportional", "absolute"] = setting(
        "proportional",
        "Connections that are edges, by the absolute value of their entry; its sign is kept as the weight. "
        "proportional: the share `density` of the strongest of each subject; absolute: those at or above `threshold`. "
        "An entry of 0 is no edge. The networks of GCFL (GIN) read neither the sign nor the weight of an edge: a "
        "correlation of -0.6 is an edge like one of 0.6.",
    )
    density: float = setting(
        0.1,
        "Share of all connections between two regions that `edges: proportional` keeps, at least one; of equal ones "
        "those of the first regions.",
        minimum=0,
        maximum=1,
    )
    threshold: float = setting(0.3, "Smallest absolute value of an edge with `edges: absolute`.", minimum=0)

    def __post_init__(self) -> None:
        """Refuse a share of nothing."""
        if self.density == 0:
            raise ValueError("density: expected a share above 0 and at most 1, found 0, which leaves no edge; raise it")

    def most_connections(self, regions: int) -> int:
        """Largest number of connections that are edges in a connectome of R regions."""
        connections = regions * (regions - 1) // 2
        if self.edges == "absolute" or connections == 0:
            return connections
        return max(1, math.floor(self.density * connections + 0.5))


def require_connections(regions: int, where: str) -> None:
    """Refuse a connectome without a connection.

    Raises:
        UserError: there are fewer than two regions.
    """
    if regions < 2:
        raise UserError(
            f"{where}: expected two regions or more, between which there are connections, found {regions}; use an "
            "atlas with more regions."
        )
