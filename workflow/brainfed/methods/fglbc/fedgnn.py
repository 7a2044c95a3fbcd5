"""FedGNN + DP: a graph network without convolution over time, under the same private training (Chen and Su 2024)."""

from dataclasses import dataclass

from brainfed.federation.privacy.settings import NOT_OF_TWINS
from brainfed.methods.fglbc.settings import (
    MEAN_ADJACENCY,
    QUICK_REGION_GNN,
    REGION_GNN_TENSORS,
    FederatedRegionGNNSettings,
)
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedGNNSettings(FederatedRegionGNNSettings):
    """The network's settings and the federation's."""


METHOD = Method(
    name="fedgnn",
    title="FedGNN",
    settings=FedGNNSettings,
    entry="brainfed.methods.fglbc.train:train_fedgnn",
    family="federated",
    topology="federated",
    between_sites={},
    leaves_out=True,
    twins=Twins(
        "gnn-local",
        "gnn-central",
        "The twins train without noise.",
        apart=NOT_OF_TWINS,
    ),
    needs=("series",),
    gpu=True,
    on_request=(
        "fedgnn-dp",
        "fedgnn-no-dp",
    ),
    shared_tensors={**REGION_GNN_TENSORS, **MEAN_ADJACENCY},
    quick={"rounds": 2, **QUICK_REGION_GNN},
    variants={"fedgnn-dp": {}, "fedgnn-no-dp": {"privacy": "none"}},
)
