"""Central ST-GCN: the network of the pooled series, which a federation may not train: an upper reference."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import POOLED_SERIES, QUICK_STGCN, SoloSTGCNSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class CentralSTGCNSettings(SoloSTGCNSettings):
    """The network's settings and those of its training."""


METHOD = Method(
    name="stgcn-central",
    title="Central ST-GCN",
    settings=CentralSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_stgcn_central",
    family="graph",
    topology="central",
    needs=("series",),
    gpu=True,
    on_request=("stgcn-central",),
    shared_tensors={**POOLED_SERIES},
    quick={"epochs": 2, **QUICK_STGCN},
    variants={"stgcn-central": {}},
)
