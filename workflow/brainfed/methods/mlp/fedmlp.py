"""FedMLP: FedAvg over the same classifier without a graph (FedNI Sec. 9)."""

from dataclasses import dataclass

from brainfed.federation.schedule import FederationSettings
from brainfed.methods.classifier_settings import (
    DROPOUT_DESCRIPTION,
    HIGHEST_DROPOUT,
    MOMENTS_TENSORS,
    NETWORK_TENSORS,
    SIZES_TENSORS,
    STANDARDISE_DESCRIPTION,
    Standardise,
)
from brainfed.methods.method import Method, Twins
from brainfed.runtime.precision import PRECISION_DESCRIPTION, Precision
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedMLPSettings(FederationSettings):
    """The federation's settings and the classifier's."""

    hidden: tuple[int, int] = setting((64, 32), "Widths of the two hidden layers.")
    standardise: Standardise = setting("institution", STANDARDISE_DESCRIPTION)
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)
    dropout: float = setting(0.0, DROPOUT_DESCRIPTION, minimum=0, maximum=HIGHEST_DROPOUT)


METHOD = Method(
    name="fedmlp",
    title="FedMLP",
    settings=FedMLPSettings,
    entry="brainfed.methods.mlp.train_fedmlp:train",
    family="federated",
    topology="federated",
    twins=Twins("localmlp", "centralmlp"),
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **SIZES_TENSORS, **MOMENTS_TENSORS},
    variants={"fedmlp": {}},
)
