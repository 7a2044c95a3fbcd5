"""Settings of population graphs (FedNI Sec. III-A) and of connectomes."""

import math
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime import UserError, setting

PhenotypeName = Literal["sex", "age", "site"]
Distance = Literal["euclidean", "correlation"]

FEWEST = 3
"""Fewest values of a subject for a correlation."""


@dataclass(frozen=True)
class GraphSettings:
    """Settings of the edges of a population graph and their weights."""

    k: int = setting(10, "Neighbours kept in each row before the graph is made symmetric (FedNI Fig. 8).", minimum=1)
    embedding: Literal["pca", "rfe", "none"] = setting(
        "pca",
        "Space in which subjects are compared. pca: principal components, without labels; rfe: features selected by "
        "recursive elimination with a ridge classifier on the training labels of each fold, z-scored; none: the "
        "features themselves, such as those of `features.selection: rfe`.",
    )
    embedding_dimensions: int = setting(
        50, "Number of compared principal components (at most one less than the subjects) or features.", minimum=1
    )
    scaling: Literal["none", "columns"] = setting(
        "none",
        "Scaling before principal components, and with `embedding: none`. none: no scaling; columns: each feature is "
        "z-scored by the subjects of the fit, so that units have no effect. Morphometry is always scaled.",
    )
    distance: Distance = setting(
        "euclidean",
        "Distance of two subjects' embeddings. correlation: one minus their correlation, as in the released code of "
        "Parisot et al. 2018; not of principal components, as their signs are arbitrary.",
    )
    sigma: float = setting(
        1.0,
        "Width of the kernel exp(-d^2 / (2 sigma^2)) as a multiple of the mean distance over all pairs; 1: the mean, "
        "as in Parisot et al. 2018.",
        minimum=0.01,
    )
    phenotypes: tuple[PhenotypeName, ...] = setting(
        ("sex", "age"),
        "Phenotypes that weigh an edge by their agreement; a missing value agrees with none. None: imaging alone.",
    )
    age_gap: float = setting(2.0, "Ages agree when they differ by at most this many years (gamma).", minimum=0)
    scope: Literal["local", "global", "global_cut"] = setting(
        "global_cut",
        "`global_cut`: one graph over all subjects without the edges between institutions, as in FedNI: a simulation "
        "with missing and known neighbours. `local`: one graph an institution, in which all subjects have k "
        "neighbours: none is missing, and nothing crosses; transductive runs with `validation: leave_one_site_out` "
        "always use it. `global`: one whole graph over all subjects.",
    )
    self_weight: float = setting(
        1.0,
        "Weight of the self-loops. 0: none, so that a subject without neighbours receives nothing, and its score does "
        "not depend on it; 2: with two phenotypes, a subject's similarity to itself.",
        minimum=0,
    )
    shuffle: bool = setting(
        False, "Control: nodes are permuted inside their institution; degrees stay, neighbours become random."
    )

    def __post_init__(self) -> None:
        """Refuse correlations that depend on arbitrary signs or on too few values."""
        if self.distance == "correlation" and self.embedding == "pca":
            raise ValueError(
                "distance: expected euclidean with embedding pca, found correlation, which depends on the arbitrary "
                "signs of components; choose embedding rfe or none"
            )

        if self.distance == "correlation" and self.embedding == "rfe" and self.embedding_dimensions < FEWEST:
            raise ValueError(
                f"embedding_dimensions: expected {FEWEST} or more with distance correlation, found "
                f"{self.embedding_dimensions}; two values correlate at 1 or -1"
            )

    @property
    def fitted(self) -> bool:
        """Whether labels of training subjects fit the graph, so that every fold has its own."""
        return self.embedding == "rfe"


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
