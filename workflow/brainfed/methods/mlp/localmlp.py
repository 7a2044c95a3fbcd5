"""LocalMLP: FedMLP's classifier in every institution alone: the local twin of FedMLP.

Nothing crosses institutions except under leave-one-site-out: the other sites' models score the unseen one.
"""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import MOMENTS_TENSORS, NETWORK_TENSORS, QUICK_EPOCHS, SoloSettings
from brainfed.methods.method import Method


@dataclass(frozen=True)
class LocalMLPSettings(SoloSettings):
    """Training in one institution."""


METHOD = Method(
    name="localmlp",
    title="LocalMLP",
    settings=LocalMLPSettings,
    entry="brainfed.methods.mlp.train:train_localmlp",
    family="graph",
    topology="local",
    model="brainfed.methods.mlp.kept:score",
    without_model={"choose": "inner"},
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **MOMENTS_TENSORS},
    quick=QUICK_EPOCHS,
    variants={"localmlp": {}, "localmlp-centred": {"centre": "subject"}},
)
