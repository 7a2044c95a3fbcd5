"""FedNI: FedGCN on graphs completed by a federated generator of missing neighbours (FedNI Sec. III)."""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import MOMENTS_CROSS, NETWORK_CROSSES, SKIP_CROSSES
from brainfed.methods.fedgcn import FedGCNSettings
from brainfed.methods.inpainter import FEDNI
from brainfed.methods.method import Method


@dataclass(frozen=True)
class FedNISettings(FedGCNSettings):
    """The classifier's settings, those of FedGCN; `inpainting` and `fusing` are stages of their own."""


METHOD = Method(
    name="fedni",
    title="FedNI",
    settings=FedNISettings,
    entry="brainfed.training.fedni:train",
    family="federated",
    graph="local",
    inpainter=FEDNI,
    gpu=True,
    crosses={**NETWORK_CROSSES, **SKIP_CROSSES, **MOMENTS_CROSS},
    variants={"fedni": {}, "fedni-skip": {"skip": "linear"}},
)
