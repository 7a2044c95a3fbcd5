"""Local ST-GCN: the network of every institution alone, the local twin of FGLBC."""

from dataclasses import dataclass

from brainfed.methods.fglbc.settings import MEAN_ADJACENCY, QUICK_STGCN, STGCN_TENSORS, SoloSTGCNSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class LocalSTGCNSettings(SoloSTGCNSettings):
    """The network's settings and those of its training."""


METHOD = Method(
    name="stgcn-local",
    title="Local ST-GCN",
    settings=LocalSTGCNSettings,
    entry="brainfed.methods.fglbc.train:train_stgcn_local",
    family="graph",
    topology="local",
    needs=("series",),
    gpu=True,
    on_request=("stgcn-local",),
    shared_tensors={**STGCN_TENSORS, **MEAN_ADJACENCY},
    quick={"epochs": 2, **QUICK_STGCN},
    variants={"stgcn-local": {}},
)
