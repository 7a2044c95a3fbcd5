"""Settings of FedNI's first phase: masking, generator, discriminator, federation, fusing (FedNI Sec. III-B, III-C)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation.noise_settings import NOISE, NOISE_DESCRIPTION
from brainfed.runtime.precision import PRECISION_DESCRIPTION, Precision
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class InpaintingSettings:
    """Federated training of the missing-node generator. No label and no fold of a shared graph enters it."""

    rounds: int = setting(30, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(10, "Local epochs E between two communications.", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate, of generator and discriminator.", minimum=0)
    noise: float = setting(NOISE, NOISE_DESCRIPTION, minimum=0)
    federated: Literal["generator", "both", "discriminator", "none"] = setting(
        "generator", "Networks averaged over institutions (FedNI Fig. 3: FL-G, FL-G-D, FL-D, NoFL-G-D)."
    )
    masking: Literal["bfs", "random"] = setting(
        "bfs", "Hidden nodes: leaves of a breadth-first tree, or as many random nodes."
    )
    hidden_least: float = setting(
        0.10, "Smallest fraction of the nodes to hide, where there are enough leaves.", minimum=0
    )
    hidden_most: float = setting(0.15, "Largest fraction of the nodes to hide.", minimum=0, maximum=1)
    targets: Literal["neighbours", "parent"] = setting(
        "neighbours", "A hidden node is a target of all its visible neighbours, or of its parent in the tree alone."
    )
    count: Literal["calibrated", "printed"] = setting(
        "calibrated",
        "The number of missing neighbours (FedNI eq. 6). printed: from the embedding alone, on the scale of a mask; "
        "calibrated: its head also reads the number of visible neighbours and does not train the encoder; under "
        "`scope: global_cut` its prediction is scaled from masks to the cut.",
    )
    pairing: Literal["order", "hungarian"] = setting(
        "order", "Draws and hidden neighbours of one node are paired in order of id, or by the smallest total error."
    )
    reconstruction: Literal["balanced", "sum", "mean"] = setting(
        "balanced",
        "Weight of the squared error of a hidden neighbour (FedNI eq. 8) against the other losses. sum: over its "
        "features, as printed, which dominates the others at thousands of features; mean: over its features, which "
        "they dominate; balanced: the sum, with the other losses' gradients by the generated features scaled to its "
        "gradient's length, so that alpha and beta do not depend on the number of features.",
    )
    alpha: float = setting(1.0, "Weight of the reconstruction loss (FedNI eq. 10).", minimum=0)
    beta: float = setting(1.0, "Weight of the adversarial loss (FedNI eq. 10).", minimum=0)
    discriminator: bool = setting(True, "Train against a discriminator; off: reconstruction alone.")
    d_interval: int = setting(1, "Local epochs between two steps of the discriminator.", minimum=1)
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)

    def __post_init__(self) -> None:
        if self.hidden_least > self.hidden_most:
            raise ValueError(f"hidden_least: {self.hidden_least} is more than hidden_most: {self.hidden_most}")
        if self.masking == "random" and self.targets == "parent":
            raise ValueError("targets: parent needs masking: bfs, nodes hidden at random have no parent")


@dataclass(frozen=True)
class FusingSettings:
    """How generated nodes join an institution's graph (FedNI Sec. III-B.2)."""

    cap: float | None = setting(
        0.5, "Largest number of generated nodes a subject of the institution; none: no limit.", minimum=0
    )
    rounding: Literal["round", "truncate"] = setting(
        "round", "How a predicted number of neighbours becomes an integer."
    )
    edges: Literal["similar", "k", "parent", "binary"] = setting(
        "similar",
        "Edges of a generated node. similar: to its parent and to the most similar of the institution, as many as a "
        "true foreign neighbour has there; k: to its parent and the k most similar, the graph's k; "
        "parent: to its parent alone, by similarity; binary: the same of weight 1.",
    )
    nodes: Literal["generated", "random", "mean", "shuffled", "true"] = setting(
        "generated",
        "New nodes. generated: from the generator. Controls, with its numbers of nodes: random: features from a normal "
        "distribution fitted to each (Fig. 4); mean: the institution's mean; shuffled: permuted generated features, "
        "with the same edges; true: the subjects that `scope: global_cut` cut away, an oracle that shares their "
        "features.",
    )
