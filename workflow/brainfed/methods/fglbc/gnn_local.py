"""Local GNN: the network without convolution over time of every institution alone, the local twin of FedGNN."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import MEAN_ADJACENCY, QUICK_REGION_GNN, REGION_GNN_TENSORS, SoloRegionGNNSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class LocalGNNSettings(SoloRegionGNNSettings):
    """The network's settings and those of its training."""


METHOD = Method(
    name="gnn-local",
    title="Local GNN",
    settings=LocalGNNSettings,
    entry="brainfed.methods.fglbc.train:train_gnn_local",
    family="graph",
    topology="local",
    needs=("series",),
    gpu=True,
    on_request=("gnn-local",),
    shared_tensors={**REGION_GNN_TENSORS, **MEAN_ADJACENCY},
    quick={"epochs": 2, **QUICK_REGION_GNN},
    variants={"gnn-local": {}},
)
