"""Central GNN: the network without convolution over time of the pooled series: an upper reference."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import POOLED_SERIES, QUICK_REGION_GNN, SoloRegionGNNSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class CentralGNNSettings(SoloRegionGNNSettings):
    """The network's settings and those of its training."""


METHOD = Method(
    name="gnn-central",
    title="Central GNN",
    settings=CentralGNNSettings,
    entry="brainfed.methods.fglbc.train:train_gnn_central",
    family="graph",
    topology="central",
    needs=("series",),
    gpu=True,
    on_request=("gnn-central",),
    shared_tensors={**POOLED_SERIES},
    quick={"epochs": 2, **QUICK_REGION_GNN},
    variants={"gnn-central": {}},
)
