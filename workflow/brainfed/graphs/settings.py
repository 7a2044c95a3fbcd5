"""Settings of the population graph (FedNI Sec. III-A)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting

PhenotypeName = Literal["sex", "age", "site"]
Distance = Literal["euclidean", "correlation"]
FEWEST = 3
"""Values of a subject that a correlation can be taken of."""


@dataclass(frozen=True)
class GraphSettings:
    """Who is whose neighbour, and how much a neighbour counts."""

    k: int = setting(10, "Neighbours kept in each row before the graph is made symmetric (FedNI Fig. 8).", minimum=1)
    embedding: Literal["pca", "rfe", "none"] = setting(
        "pca",
        "In what subjects are compared. pca: principal components, without labels; rfe: the features that recursive "
        "elimination with a ridge classifier keeps on the training labels of each fold, z-scored; none: the features "
        "as they are, such as those that `features.selection: rfe` keeps.",
    )
    embedding_dimensions: int = setting(
        50, "Principal components (at most one less than the subjects) or features that are compared.", minimum=1
    )
    scaling: Literal["none", "columns"] = setting(
        "none",
        "Before principal components, and with `embedding: none`. none: features as they are; columns: each z-scored "
        "by the subjects that the graph is fitted to, so that none counts for its unit. Morphometry is always scaled.",
    )
    distance: Distance = setting(
        "euclidean",
        "Between two subjects' embeddings. correlation: one minus their correlation, as in the released code of "
        "Parisot et al. 2018; not of principal components, whose signs are arbitrary.",
    )
    sigma: float = setting(
        1.0,
        "Width of the kernel exp(-d^2 / (2 sigma^2)) as a multiple of the mean distance over all pairs; 1: the mean, "
        "as in Parisot et al. 2018.",
        minimum=0.01,
    )
    phenotypes: tuple[PhenotypeName, ...] = setting(
        ("sex", "age"),
        "Phenotypes whose agreement weighs an edge; a missing value agrees with nothing. None: imaging alone.",
    )
    age_gap: float = setting(2.0, "Ages agree when they differ by at most this many years (gamma).", minimum=0)
    scope: Literal["local", "global", "global_cut"] = setting(
        "global_cut",
        "`global_cut`: one graph over everybody, from which the edges between institutions are removed, as in FedNI: a "
        "simulation, in which neighbours are missing and known. `local`: each institution from its own subjects, who "
        "all have k neighbours there: nobody is missing, and nothing crosses; always so in transductive runs with "
        "`validation: leave_one_site_out`. `global`: over everybody, whole.",
    )
    self_weight: float = setting(
        1.0,
        "Weight of the self-loops. 0: none, so that a subject without neighbours hears nobody, not even itself, and "
        "its score says nothing of it; 2: with two phenotypes, a subject's similarity to itself.",
        minimum=0,
    )
    shuffle: bool = setting(
        False, "Control: nodes trade places at random inside their institution; degrees stay, neighbours mean nothing."
    )

    def __post_init__(self) -> None:
        """Refuse correlations that depend on arbitrary signs, or of next to nothing."""
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
        """Whether true diagnoses of training subjects are used, so that every fold has a graph of its own."""
        return self.embedding == "rfe"
