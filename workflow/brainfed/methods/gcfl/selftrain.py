"""Self-train: the network of every institution alone, the local twin of the federated ones (Xie et al. 2021)."""

from dataclasses import dataclass

from brainfed.methods.gcfl.settings import CONVOLUTIONS, OWN_LAYERS, SoloGINSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class SelfTrainSettings(SoloGINSettings):
    """Training in one institution."""


METHOD = Method(
    name="selftrain",
    title="Self-train GIN",
    settings=SelfTrainSettings,
    entry="brainfed.methods.gcfl.train:train_selftrain",
    family="graph",
    topology="local",
    needs=("connectomes",),
    gpu=True,
    shared_tensors={**CONVOLUTIONS, **OWN_LAYERS},
    quick={"epochs": 3},
    variants={"selftrain": {}},
)
