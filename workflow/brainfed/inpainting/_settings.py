"""Settings of inpainting, and the tensors that institutions share in it. Light: the methods declare them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from brainfed.federation import NOISE, NOISE_DESCRIPTION
from brainfed.runtime import PRECISION_DESCRIPTION, Precision, setting

# Settings of FedNI's first phase: masking, generator, discriminator, federation, fusing (FedNI Sec. III-B, III-C).


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


@dataclass(frozen=True)
class CentroidSettings:
    """Groups of similar subjects; other institutions receive their means."""

    min_group: int = setting(
        10,
        "Minimum subjects of a group, and minimum known values behind a sex or age that is sent. An institution with "
        "fewer subjects sends nothing. A mean of several subjects gives no formal privacy guarantee.",
        minimum=2,
    )


CENTROIDS_TENSORS: Mapping[str, tuple[str, ...]] = {"centroid": ("features",), "centroid-sex": (), "centroid-age": ()}
"""One tensor a group: its mean features, the more frequent sex, the mean age."""


@dataclass(frozen=True)
class FedSageSettings:
    """Local training of the generator, then federated rounds that train its feature generator."""

    local_epochs: int = setting(20, "Epochs of the local generator.", minimum=1)
    rounds: int = setting(20, "Federated rounds, in which only the feature generator trains.", minimum=0)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    noise: float = setting(NOISE, NOISE_DESCRIPTION, minimum=0)
    hidden_fraction: float = setting(0.10, "Fraction of the nodes that is hidden.", minimum=0, maximum=1)
    count: Literal["calibrated", "printed"] = setting(
        "calibrated",
        "The number of missing neighbours. printed: on the scale of the hidden tenth; calibrated: under "
        "`scope: global_cut` scaled to the cut.",
    )
    targets: int = setting(
        5, "Largest number of hidden neighbours of a node as targets, and of generated ones.", minimum=1
    )
    dropout: float = setting(0.5, "Dropout of encoder and feature generator.", minimum=0, maximum=0.95)
    fgen_width: int = setting(
        256, "Width of the feature generator's last hidden layer; the authors' code has 2048.", minimum=1
    )
    exchange: Literal["gradients", "raw"] = setting(
        "gradients",
        "Returned by other owners: the generator's parameter gradient, or a gradient for each generated node, which "
        "reveals raw features.",
    )


# Tensors that institutions share in federated inpainting: name -> axes. Light: the methods declare them.


def _layer(name: str, read: str, made: str) -> dict[str, tuple[str, ...]]:
    """Weight and bias of a linear layer from the axis `read` to the axis `made`."""
    return {f"{name}.weight": (made, read), f"{name}.bias": (made,)}


def _normal(name: str, axis: str) -> dict[str, tuple[str, ...]]:
    """Weights and running moments of batch normalisation."""
    return {f"{name}.{part}": (axis,) for part in ("weight", "bias", "running_mean", "running_var")}


SIZE_TENSORS: Mapping[str, tuple[str, ...]] = {"training-subjects": ()}
"""Sizes of institutions: no subject has more missing neighbours than there are foreign subjects."""
GENERATOR_TENSORS: Mapping[str, tuple[str, ...]] = {
    **_layer("encoder_0", "features", "encoder-0"),
    **_layer("encoder_1", "encoder-0", "encoder-1"),
    **_layer("count", "embedding-and-degree", "one"),
    **_layer("feature_0", "embedding-and-noise", "feature-0"),
    **_normal("normal_0", "feature-0"),
    **_layer("feature_1", "feature-0", "feature-1"),
    **_normal("normal_1", "feature-1"),
    **_layer("feature_2", "feature-1", "features"),
    **_layer("phenotype_0", "features", "phenotype-0"),
    **_layer("phenotype_1", "phenotype-0", "phenotypes"),
}

DISCRIMINATOR_TENSORS: Mapping[str, tuple[str, ...]] = {
    **_layer("judge_0", "features", "judge-0"),
    **_layer("judge_1", "judge-0", "judge-1"),
    **_layer("judge_2", "judge-1", "one"),
}
"""Only under `federated: both` and `federated: discriminator`."""


def shared_tensors(settings: InpaintingSettings) -> dict[str, tuple[str, ...]]:
    """Tensors that may cross under these settings (FedNI Fig. 3): name -> axes."""
    generator = GENERATOR_TENSORS if settings.federated in ("generator", "both") else {}
    discriminator = DISCRIMINATOR_TENSORS if settings.federated in ("discriminator", "both") else {}
    return {**SIZE_TENSORS, **generator, **discriminator}


def wire_name(name: str) -> str:
    """Name on the wire of a module's tensor: spectral normalisation's original is the weight."""
    return name.replace("parametrizations.weight.original", "weight")


# Tensors that owners share in FedSage+'s generator training: name -> axes. Light: the methods declare them.
#
# Under `exchange: gradients`, owner i sends fGen's parameters, and owner j returns their gradient, summed over its
# nodes. The sum gives a patient no formal privacy guarantee. Under `exchange: raw`, owner j sends the
# embeddings of its nodes, owner i the vectors generated from them, and j returns one gradient a vector, which reveals
# its patients' features.

_LAYERS = ("first", "second", "output")
_WIDTHS = ("latent", "fgen-0", "fgen-1", "slots-features")


def _parameters(name: str) -> dict[str, tuple[str, ...]]:
    axes: dict[str, tuple[str, ...]] = {}
    for layer, (columns, rows) in zip(_LAYERS, pairwise(_WIDTHS), strict=True):
        axes |= {f"{name}.{layer}.weight": (rows, columns), f"{name}.{layer}.bias": (rows,)}
    return axes


SUMMED_TENSORS: Mapping[str, tuple[str, ...]] = {**_parameters("fgen"), **_parameters("fgen-gradient")}

RAW_TENSORS: Mapping[str, tuple[str, ...]] = {
    "embedding": ("subjects", "latent"),
    "generated": ("subjects", "slots", "features"),
    "generated-gradient": ("subjects", "slots", "features"),
}

FEDSAGE_TENSORS: Mapping[str, tuple[str, ...]] = {**SUMMED_TENSORS, **RAW_TENSORS}
