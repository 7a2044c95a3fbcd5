"""FedGCN: FedAvg over the institutions' graph convolutional classifiers (FedNI Table IV, Sec. 9)."""

from dataclasses import dataclass

from brainfed.federation.schedule import FederationSettings
from brainfed.methods.classifier_settings import (
    MOMENTS_CROSS,
    NETWORK_CROSSES,
    SKIP_CROSSES,
    SKIP_DESCRIPTION,
    STANDARDISE_DESCRIPTION,
    Skip,
    Standardise,
)
from brainfed.methods.method import Method
from brainfed.runtime.precision import PRECISION_DESCRIPTION, Precision
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedGCNSettings(FederationSettings):
    """The federation's settings and the classifier's."""

    hidden: tuple[int, int] = setting((64, 32), "Widths of the two graph convolutions.")
    standardise: Standardise = setting("institution", STANDARDISE_DESCRIPTION)
    skip: Skip = setting("none", SKIP_DESCRIPTION)
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)


METHOD = Method(
    name="fedgcn",
    title="FedGCN",
    settings=FedGCNSettings,
    entry="brainfed.training.fedgcn:train",
    family="federated",
    graph="local",
    gpu=True,
    crosses={**NETWORK_CROSSES, **SKIP_CROSSES, **MOMENTS_CROSS},
    variants={"fedgcn": {}, "fedgcn-skip": {"skip": "linear"}},
)
