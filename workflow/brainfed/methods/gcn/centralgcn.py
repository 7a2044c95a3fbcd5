"""CentralGCN: the classifier of FedNI Table IV on the population graph of all patients (FedNI Sec. 9)."""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import QUICK_EPOCHS, SoloSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class CentralGCNSettings(SoloSettings):
    """Training on pooled data; `standardise: institution` treats the pool as one institution."""


METHOD = Method(
    name="centralgcn",
    title="CentralGCN",
    settings=CentralGCNSettings,
    entry="brainfed.methods.gcn.train:train_centralgcn",
    family="graph",
    topology="central",
    needs=("features", "graph"),
    gpu=True,
    shared_tensors={"features": ("subjects", "features"), "labels": ("subjects",)},
    quick=QUICK_EPOCHS,
    variants={"centralgcn": {}},
)
