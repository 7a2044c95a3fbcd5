"""GCFL and what it is compared with: a GIN in every institution, on pooled graphs, by FedAvg, and in clusters."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.federation import NOISE_DESCRIPTION, FederationSettings
from brainfed.methods import SIZES_TENSORS, Capabilities, Comparison, Crossing, Method
from brainfed.runtime import setting

LAYERS = 3
"""Convolutions of the network."""

CONVOLUTIONS: Mapping[str, tuple[str, ...]] = {
    name: axes
    for layer in range(LAYERS)
    for linear in (0, 2)
    for name, axes in (
        (f"convs.{layer}.nn.{linear}.weight", ("hidden", "hidden")),
        (f"convs.{layer}.nn.{linear}.bias", ("hidden",)),
    )
}
"""What institutions share: the perceptrons of the convolutions."""

OWN_LAYERS: Mapping[str, tuple[str, ...]] = {
    "pre.weight": ("hidden", "features"),
    "pre.bias": ("hidden",),
    "post.weight": ("hidden", "hidden"),
    "post.bias": ("hidden",),
    "readout.weight": ("classes", "hidden"),
    "readout.bias": ("classes",),
}
"""What stays at home, except under leave-one-site-out: the others' whole networks score the unseen site."""


@dataclass(frozen=True)
class GINSettings:
    """A linear layer, three GIN convolutions, the sum over the nodes, and two linear layers."""

    hidden: int = setting(64, "Width of all layers.", minimum=1)
    dropout: float = setting(0.5, "Share of the activations that each training step drops.", minimum=0, maximum=0.95)


@dataclass(frozen=True)
class SoloGINSettings(GINSettings):
    """Training of a network without rounds."""

    epochs: int = setting(50, "Epochs.", minimum=1)
    batch: int = setting(128, "At most so many graphs a step; 0: all.", minimum=0)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    weight_decay: float = setting(5e-4, "Adam's L2 penalty.", minimum=0)

    def schedule(self) -> FederationSettings:
        """One round an epoch, without exchange or noise."""
        return FederationSettings(
            rounds=self.epochs,
            local_epochs=1,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            noise=0.0,
            batch=self.batch,
            optimiser_state="keep",
        )


@dataclass(frozen=True)
class FederatedGINSettings(GINSettings, FederationSettings):
    """Training of a network of which institutions share the convolutions."""

    rounds: int = setting(200, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(1, "Local epochs E between two communications.", minimum=1)
    weight_decay: float = setting(5e-4, "Adam's L2 penalty.", minimum=0)
    noise: float = setting(0.0, NOISE_DESCRIPTION, minimum=0)
    batch: int = setting(128, "At most so many graphs a local step; 0: all.", minimum=0)
    weighting: Literal["equal", "subjects"] = setting("subjects", "Average with weights 1/M, or n_m/n.")
    optimiser_state: Literal["reset", "keep"] = setting("keep", "What a client's Adam does between rounds.")

    def schedule(self) -> FederationSettings:
        """The rounds."""
        return self


@dataclass(frozen=True)
class SelfTrainSettings(SoloGINSettings):
    """Training in one institution."""


SELFTRAIN = Method(
    name="selftrain",
    title="Self-train GIN",
    settings=SelfTrainSettings,
    entry="brainfed.methods.gcfl.train:train_selftrain",
    family="graph",
    topology="local",
    needs=("connectomes",),
    crossing=Crossing({**CONVOLUTIONS, **OWN_LAYERS}),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 3},
    variants={"selftrain": {}},
)
"""Self-train: the network of every institution alone, the local counterpart of the federated ones (Xie et al. 2021)."""


@dataclass(frozen=True)
class CentralGINSettings(SoloGINSettings):
    """Training on pooled graphs."""

    epochs: int = setting(200, "Epochs.", minimum=1)


CENTRAL_GIN = Method(
    name="central-gin",
    title="Central GIN",
    settings=CentralGINSettings,
    entry="brainfed.methods.gcfl.train:train_central",
    family="graph",
    topology="central",
    needs=("connectomes",),
    crossing=Crossing({"nodes": ("nodes", "features"), "edges": ("edges", "ends"), "labels": ("subjects",)}),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 3},
    variants={"central-gin": {}},
)
"""The network of the pooled graphs, which a federation may not train: an upper reference."""


@dataclass(frozen=True)
class FedAvgGINSettings(FederatedGINSettings):
    """The federation's settings and the network's."""


FEDAVG_GIN = Method(
    name="fedavg-gin",
    title="FedAvg GIN",
    settings=FedAvgGINSettings,
    entry="brainfed.methods.gcfl.train:train_fedavg",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "selftrain", "central-gin", "Layers before and after the convolutions are every institution's own."
    ),
    needs=("connectomes",),
    crossing=Crossing({**CONVOLUTIONS, **OWN_LAYERS, **SIZES_TENSORS}, between_sites={}),
    capabilities=Capabilities(gpu=True),
    quick={"rounds": 3},
    variants={"fedavg-gin": {}, "fedprox-gin": {"proximal": 0.01}},
)
"""FedAvg and FedProx over the convolutions of a GIN (McMahan et al. 2017; Li et al. 2020)."""


@dataclass(frozen=True)
class GCFLSettings(FederatedGINSettings):
    """The federation's settings, the network's, and those of the clusters."""

    similarity: Literal["updates", "gradient_norms"] = setting(
        "updates",
        "Likeness of two institutions when a cluster is cut. updates: cosine of their updates in this round, GCFL; "
        "gradient_norms: distance of their sequences of gradient norms, GCFL+.",
    )
    eps1: float = setting(
        0.04,
        "A cluster is cut if the norm of its mean update is below this and that of one update above `eps2`. The "
        "defaults are the paper's for NCI1. They belong to Adam with a learning rate of 0.001 and to this network: "
        "other data, optimisers or widths need others.",
        minimum=0,
    )
    eps2: float = setting(0.08, "See `eps1`.", minimum=0)
    sequence: int = setting(5, "Last rounds whose gradient norms GCFL+ compares.", minimum=1)
    first_cut: int = setting(20, "Rounds before the first cut.", minimum=0)
    clustering: Literal["minimum_cut", "balanced"] = setting(
        "minimum_cut",
        "minimum_cut: the paper's, which cuts off one institution at a time where all are nearly alike; balanced: by "
        "the second eigenvector of the graph.",
    )

    def __post_init__(self) -> None:
        """Refuse rounds in which some institutions sit out: clusters need the updates of all."""
        super().__post_init__()
        if self.fraction < 1:
            raise ValueError(f"fraction: expected 1, as clusters need the updates of all, found {self.fraction:g}")


GCFL = Method(
    name="gcfl",
    title="GCFL",
    settings=GCFLSettings,
    entry="brainfed.methods.gcfl.train:train_gcfl",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "selftrain",
        "central-gin",
        "Layers before and after the convolutions are every institution's own.",
        apart=("similarity", "eps1", "eps2", "sequence", "first_cut", "clustering"),
    ),
    needs=("connectomes",),
    crossing=Crossing({**CONVOLUTIONS, **OWN_LAYERS, **SIZES_TENSORS, "gradient-norm": ()}, between_sites={}),
    capabilities=Capabilities(clusters=True, gpu=True),
    quick={"rounds": 3, "first_cut": 1, "eps1": 10.0, "eps2": 0.0},
    variants={"gcfl": {}, "gcfl-plus": {"similarity": "gradient_norms"}},
)
"""GCFL and GCFL+: clusters of institutions that share the convolutions of a GIN (Xie et al. 2021)."""
