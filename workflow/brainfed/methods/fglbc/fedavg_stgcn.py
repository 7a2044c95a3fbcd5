"""FedAvg + DP: FGLBC's network and private training under the plain mean (McMahan et al. 2017; Chen and Su 2024)."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import (
    MEAN_ADJACENCY,
    STGCN_TENSORS,
    FederatedSubjectSettings,
    STGCNSettings,
    require_own_graphs,
)
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedAvgSTGCNSettings(STGCNSettings, FederatedSubjectSettings):
    """The network's settings and the federation's."""

    def __post_init__(self) -> None:
        STGCNSettings.__post_init__(self)
        FederatedSubjectSettings.__post_init__(self)
        require_own_graphs(self.privacy, self.adjacency)


METHOD = Method(
    name="fedavg-stgcn",
    title="FedAvg ST-GCN",
    settings=FedAvgSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_fedavg",
    family="federated",
    topology="federated",
    twins=Twins(
        "stgcn-local",
        "stgcn-central",
        "The twins train without noise.",
        apart=("privacy", "epsilon", "delta", "clip"),
    ),
    needs=("series",),
    gpu=True,
    on_request=(
        "fedavg-dp",
        "fedavg-no-dp",
    ),
    shared_tensors={**STGCN_TENSORS, **MEAN_ADJACENCY},
    variants={"fedavg-dp": {}, "fedavg-no-dp": {"privacy": "none"}},
)
