"""FedAvg + DP: FGLBC's network and private training under the plain mean (McMahan et al. 2017; Chen and Su 2024)."""

from dataclasses import dataclass

from brainfed.federation.privacy.settings import NOT_OF_TWINS
from brainfed.methods.fglbc.settings import MEAN_ADJACENCY, QUICK_STGCN, STGCN_TENSORS, FederatedSTGCNSettings
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedAvgSTGCNSettings(FederatedSTGCNSettings):
    """The network's settings and the federation's."""


METHOD = Method(
    name="fedavg-stgcn",
    title="FedAvg ST-GCN",
    settings=FedAvgSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_fedavg",
    family="federated",
    topology="federated",
    between_sites={},
    leaves_out=True,
    twins=Twins(
        "stgcn-local",
        "stgcn-central",
        "The twins train without noise.",
        apart=NOT_OF_TWINS,
    ),
    needs=("series",),
    gpu=True,
    on_request=(
        "fedavg-dp",
        "fedavg-no-dp",
    ),
    shared_tensors={**STGCN_TENSORS, **MEAN_ADJACENCY},
    quick={"rounds": 2, **QUICK_STGCN},
    variants={"fedavg-dp": {}, "fedavg-no-dp": {"privacy": "none"}},
)
