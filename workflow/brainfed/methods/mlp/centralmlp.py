"""CentralMLP: FedMLP's classifier on the pooled data of all institutions: the pooled twin of FedMLP."""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import QUICK_EPOCHS, SoloSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class CentralMLPSettings(SoloSettings):
    """Training on pooled data; `standardise: institution` treats the pool as one institution."""


METHOD = Method(
    name="centralmlp",
    title="CentralMLP",
    settings=CentralMLPSettings,
    entry="brainfed.methods.mlp.train:train_centralmlp",
    family="graph",
    topology="central",
    model="brainfed.methods.mlp.kept:score",
    without_model={"choose": "inner"},
    gpu=True,
    shared_tensors={"features": ("subjects", "features"), "labels": ("subjects",)},
    quick=QUICK_EPOCHS,
    variants={"centralmlp": {}, "centralmlp-centred": {"centre": "subject"}},
)
