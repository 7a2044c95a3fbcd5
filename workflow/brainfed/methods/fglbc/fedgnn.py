"""FedGNN + DP: a graph network without convolution over time, under the same private training (Chen and Su 2024)."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import (
    MEAN_ADJACENCY,
    REGION_GNN_TENSORS,
    FederatedSubjectSettings,
    RegionGNNSettings,
    require_own_graphs,
)
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedGNNSettings(RegionGNNSettings, FederatedSubjectSettings):
    """The network's settings and the federation's."""

    def __post_init__(self) -> None:
        FederatedSubjectSettings.__post_init__(self)
        require_own_graphs(self.privacy, self.adjacency)


METHOD = Method(
    name="fedgnn",
    title="FedGNN",
    settings=FedGNNSettings,
    entry="brainfed.methods.fglbc.train:train_fedgnn",
    family="federated",
    topology="federated",
    twins=Twins(
        "gnn-local",
        "gnn-central",
        "The twins train without noise.",
        apart=("privacy", "epsilon", "delta", "clip"),
    ),
    needs=("series",),
    gpu=True,
    on_request=(
        "fedgnn-dp",
        "fedgnn-no-dp",
    ),
    shared_tensors={**REGION_GNN_TENSORS, **MEAN_ADJACENCY},
    variants={"fedgnn-dp": {}, "fedgnn-no-dp": {"privacy": "none"}},
)
