"""FGLBC and what it is compared with: graph networks of region series, alone, pooled and in private federations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brainfed.federation import PRIVACY_DESCRIPTION, PRIVACY_KEYS, Calibration, PrivateSchedule
from brainfed.methods import Capabilities, Comparison, Crossing, Method
from brainfed.runtime import setting

MOST_BLOCKS = 8
"""Limit of the blocks of a network."""


@dataclass(frozen=True)
class SeriesNetworkSettings:
    """Samples of a network on region series."""

    window: int = setting(
        128,
        "Time points of a window. Training crops one at random for each step; scores are means over windows that "
        "cover the scan. A shorter scan is wrapped: it starts again at its end.",
        minimum=2,
    )
    groups: int = setting(
        2,
        "Groups of channels of the normalisation, which divide the channels. A group is normalised over its channels, "
        "regions and time points of one subject.",
        minimum=1,
    )
    adjacency: Literal["subject", "cohort_mean"] = setting(
        "subject",
        "subject: the subject's own correlations above 0; cohort_mean: their mean over the training subjects, which "
        "every subject's gradient then depends on: it needs privacy: none.",
    )


@dataclass(frozen=True)
class STGCNSettings(SeriesNetworkSettings):
    """A spatio-temporal graph convolutional network (Gadgil et al. 2020; Chen and Su 2024, eq. 4 and 5)."""

    channels: int = setting(64, "Channels of all blocks.", minimum=1)
    kernel: int = setting(11, "Time points of the temporal kernel.", minimum=1)
    strides: tuple[int, ...] = setting(
        (1, 1, 1), "Temporal stride of each block; their number is that of the blocks. Larger ones are faster."
    )
    edge_importance: bool = setting(
        True,
        "Whether a factor for each edge is learnt, the same in all blocks. Without it all regions have the same "
        "weights; with it these are most of the weights, and all get noise.",
    )

    def __post_init__(self) -> None:
        if not 1 <= len(self.strides) <= MOST_BLOCKS or min(self.strides) < 1:
            raise ValueError(
                f"strides: expected one whole number from 1 on for each of 1 to {MOST_BLOCKS} blocks, found "
                f"{list(self.strides)}; [1, 1, 1] is the paper's size"
            )
        if self.kernel % 2 == 0:
            raise ValueError(
                f"kernel: expected an odd number of time points, found {self.kernel}; {self.kernel + 1} is one"
            )
        require_equal_groups(self.groups, "channels", self.channels)


@dataclass(frozen=True)
class RegionGNNSettings(SeriesNetworkSettings):
    """A graph network whose nodes are regions with their windows as features: no convolution over time."""

    hidden: int = setting(64, "Width of its layers.", minimum=1)
    layers: int = setting(3, "Graph convolutions.", minimum=1, maximum=MOST_BLOCKS)
    edge_importance: bool = setting(True, "Whether a factor for each edge is learnt.")

    def __post_init__(self) -> None:
        require_equal_groups(self.groups, "hidden", self.hidden)


@dataclass(frozen=True)
class SoloSubjectSettings:
    """Training without rounds, and without noise."""

    epochs: int = setting(100, "Epochs.", minimum=1)
    batch: int = setting(32, "Expected number of subjects a step, each drawn with the same probability.", minimum=1)
    optimiser: Literal["sgd", "adam"] = setting("adam", "Optimiser.")
    learning_rate: float = setting(0.01, "Learning rate of the optimiser.", minimum=0)
    weight_decay: float = setting(0.0, "L2 penalty of the optimiser.", minimum=0)

    def schedule(self) -> PrivateSchedule:
        """One round an epoch, without exchange or noise."""
        return PrivateSchedule(
            privacy="none",
            rounds=self.epochs,
            local_epochs=1,
            batch=self.batch,
            optimiser=self.optimiser,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            optimiser_state="keep",
        )


@dataclass(frozen=True)
class SoloSTGCNSettings(STGCNSettings, SoloSubjectSettings):
    """A spatio-temporal network and its training."""


@dataclass(frozen=True)
class SoloRegionGNNSettings(RegionGNNSettings, SoloSubjectSettings):
    """A network without convolution over time and its training."""


@dataclass(frozen=True)
class FederatedSubjectSettings(PrivateSchedule):
    """Rounds between institutions, each of which protects its own subjects."""

    privacy: Calibration = setting("accountant", PRIVACY_DESCRIPTION)
    rounds: int = setting(100, "Communication rounds T.", minimum=1)
    optimiser: Literal["sgd", "adam"] = setting("adam", "Optimiser of the local steps.")
    learning_rate: float = setting(0.01, "Learning rate of the optimiser.", minimum=0)

    def schedule(self) -> PrivateSchedule:
        """The rounds."""
        return self


def require_equal_groups(groups: int, name: str, channels: int) -> None:
    """Refuse groups that do not divide the channels of setting `name`.

    Raises:
        ValueError: they do not.
    """
    if channels % groups:
        raise ValueError(f"groups: expected a number that divides {name}: {channels}, found {groups}; 1 always does")


def require_own_graphs(privacy: Calibration, adjacency: str) -> None:
    """Refuse a privacy setting under which a graph of all subjects leaves the institutions without noise.

    Raises:
        ValueError: the graphs are shared, and epsilon would not hold.
    """
    if privacy != "none" and adjacency != "subject":
        raise ValueError(
            f"adjacency: expected subject under privacy: {privacy}, found {adjacency}, whose sums of correlations "
            "leave every institution without noise; set privacy: none"
        )


@dataclass(frozen=True)
class FederatedSTGCNSettings(STGCNSettings, FederatedSubjectSettings):
    """A spatio-temporal network and its federation."""

    def __post_init__(self) -> None:
        STGCNSettings.__post_init__(self)
        FederatedSubjectSettings.__post_init__(self)
        require_own_graphs(self.privacy, self.adjacency)


@dataclass(frozen=True)
class FederatedRegionGNNSettings(RegionGNNSettings, FederatedSubjectSettings):
    """A network without convolution over time and its federation."""

    def __post_init__(self) -> None:
        RegionGNNSettings.__post_init__(self)
        FederatedSubjectSettings.__post_init__(self)
        require_own_graphs(self.privacy, self.adjacency)


READOUT: Mapping[str, tuple[str, ...]] = {"readout.weight": ("classes", "channels"), "readout.bias": ("classes",)}
IMPORTANCE: Mapping[str, tuple[str, ...]] = {"importance.weight": ("regions", "regions")}

STGCN_TENSORS: Mapping[str, tuple[str, ...]] = {
    **IMPORTANCE,
    **{
        f"blocks.{block}.{name}": axes
        for block in range(MOST_BLOCKS)
        for name, axes in (
            ("kernels.spatial", ("channels", "channels" if block else "inputs")),
            ("kernels.temporal", ("channels", "channels", "kernel")),
            ("norm.weight", ("channels",)),
            ("norm.bias", ("channels",)),
        )
    },
    **READOUT,
}
REGION_GNN_TENSORS: Mapping[str, tuple[str, ...]] = {
    **IMPORTANCE,
    **{
        f"convolutions.{layer}.{name}": axes
        for layer in range(MOST_BLOCKS)
        for name, axes in (
            ("channels.weight", ("channels", "channels" if layer else "window", "taps")),
            ("norm.weight", ("channels",)),
            ("norm.bias", ("channels",)),
        )
    },
    **READOUT,
}
MEAN_ADJACENCY: Mapping[str, tuple[str, ...]] = {"adjacency-sum": ("regions", "regions"), "training-subjects": ()}
"""Sent under `adjacency: cohort_mean` alone."""

POOLED_SERIES: Mapping[str, tuple[str, ...]] = {"series": ("time-points", "regions"), "labels": ("subjects",)}
"""Leaves the institutions for a model on pooled data."""

QUICK_STGCN: Mapping[str, Any] = {"window": 12, "channels": 4, "kernel": 3, "strides": (2, 1)}
QUICK_REGION_GNN: Mapping[str, Any] = {"window": 12, "hidden": 4, "layers": 2}
"""Small networks (`Method.quick`)."""

STGCN_LOCAL = Method(
    name="stgcn-local",
    title="Local ST-GCN",
    settings=SoloSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_stgcn_local",
    family="graph",
    topology="local",
    needs=("series",),
    on_request=("stgcn-local",),
    crossing=Crossing({**STGCN_TENSORS, **MEAN_ADJACENCY}),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 2, **QUICK_STGCN},
    variants={"stgcn-local": {}},
)
"""The network of every institution alone, the local counterpart of FGLBC."""

STGCN_CENTRAL = Method(
    name="stgcn-central",
    title="Central ST-GCN",
    settings=SoloSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_stgcn_central",
    family="graph",
    topology="central",
    needs=("series",),
    on_request=("stgcn-central",),
    crossing=Crossing(POOLED_SERIES),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 2, **QUICK_STGCN},
    variants={"stgcn-central": {}},
)
"""The network of the pooled series, which a federation may not train: an upper reference."""

GNN_LOCAL = Method(
    name="gnn-local",
    title="Local GNN",
    settings=SoloRegionGNNSettings,
    entry="brainfed.methods.fglbc.train:train_gnn_local",
    family="graph",
    topology="local",
    needs=("series",),
    on_request=("gnn-local",),
    crossing=Crossing({**REGION_GNN_TENSORS, **MEAN_ADJACENCY}),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 2, **QUICK_REGION_GNN},
    variants={"gnn-local": {}},
)
"""The network without convolution over time of every institution alone, the local counterpart of FedGNN."""

GNN_CENTRAL = Method(
    name="gnn-central",
    title="Central GNN",
    settings=SoloRegionGNNSettings,
    entry="brainfed.methods.fglbc.train:train_gnn_central",
    family="graph",
    topology="central",
    needs=("series",),
    on_request=("gnn-central",),
    crossing=Crossing(POOLED_SERIES),
    capabilities=Capabilities(gpu=True),
    quick={"epochs": 2, **QUICK_REGION_GNN},
    variants={"gnn-central": {}},
)
"""The network without convolution over time of the pooled series: an upper reference."""

FEDAVG_STGCN = Method(
    name="fedavg-stgcn",
    title="FedAvg ST-GCN",
    settings=FederatedSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_fedavg",
    family="federated",
    topology="federated",
    comparison=Comparison("stgcn-local", "stgcn-central", "The counterparts train without noise.", apart=PRIVACY_KEYS),
    needs=("series",),
    on_request=("fedavg-dp", "fedavg-no-dp"),
    crossing=Crossing({**STGCN_TENSORS, **MEAN_ADJACENCY}, between_sites={}, leaves_out=True),
    capabilities=Capabilities(gpu=True),
    quick={"rounds": 2, **QUICK_STGCN},
    variants={"fedavg-dp": {}, "fedavg-no-dp": {"privacy": "none"}},
)
"""FedAvg + DP: FGLBC's network and private training under the plain mean (McMahan et al. 2017; Chen and Su 2024)."""

FEDGNN = Method(
    name="fedgnn",
    title="FedGNN",
    settings=FederatedRegionGNNSettings,
    entry="brainfed.methods.fglbc.train:train_fedgnn",
    family="federated",
    topology="federated",
    comparison=Comparison("gnn-local", "gnn-central", "The counterparts train without noise.", apart=PRIVACY_KEYS),
    needs=("series",),
    on_request=("fedgnn-dp", "fedgnn-no-dp"),
    crossing=Crossing({**REGION_GNN_TENSORS, **MEAN_ADJACENCY}, between_sites={}, leaves_out=True),
    capabilities=Capabilities(gpu=True),
    quick={"rounds": 2, **QUICK_REGION_GNN},
    variants={"fedgnn-dp": {}, "fedgnn-no-dp": {"privacy": "none"}},
)
"""FedGNN + DP: a graph network without convolution over time, under the same private training (Chen and Su 2024)."""


@dataclass(frozen=True)
class FGLBCSettings(FederatedSTGCNSettings):
    """The network's settings, the federation's, and those of the server's mean."""

    aggregation: Literal["similarity", "printed"] = setting(
        "similarity",
        "similarity: weights by the likeness of an institution's update to the server's last one; the paper compares "
        "projected weights. printed: equation 6 as printed, on weights, which adds their weighted mean to the global "
        "model.",
    )
    temperature: float = setting(10.0, "Factor tau of the likeness in the softmax.", minimum=0)
    components: int = setting(
        0,
        "Principal components of the updates that are compared, the largest first; 0: all, with which the likeness is "
        "that of the updates themselves.",
        minimum=0,
    )


FGLBC = Method(
    name="fglbc",
    title="FGLBC",
    settings=FGLBCSettings,
    entry="brainfed.methods.fglbc.train:train_fglbc",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "stgcn-local",
        "stgcn-central",
        "The counterparts train without noise.",
        apart=("aggregation", "temperature", "components", *PRIVACY_KEYS),
    ),
    needs=("series",),
    on_request=("fglbc", "fglbc-no-dp", "fglbc-printed-noise"),
    crossing=Crossing({**STGCN_TENSORS, **MEAN_ADJACENCY}, between_sites={}, leaves_out=True),
    capabilities=Capabilities(gpu=True),
    quick={"rounds": 2, **QUICK_STGCN},
    variants={"fglbc": {}, "fglbc-no-dp": {"privacy": "none"}, "fglbc-printed-noise": {"privacy": "paper"}},
)
"""A spatio-temporal graph network, private training, similarity-weighted aggregation (Chen and Su 2024)."""
