"""FedMLP: FedAvg over the same classifier without a graph (FedNI Sec. 9)."""

from dataclasses import dataclass

from brainfed.federation.robustness_settings import NOT_OF_TWINS
from brainfed.methods.classifier_settings import (
    BETWEEN_SITES,
    CHOICE_TENSORS,
    NETWORK_TENSORS,
    QUICK_ROUNDS,
    SIZES_TENSORS,
    SUMMED_MOMENTS_TENSORS,
    FederatedClassifierSettings,
)
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedMLPSettings(FederatedClassifierSettings):
    """The federation's settings and the classifier's."""


METHOD = Method(
    name="fedmlp",
    title="FedMLP",
    settings=FedMLPSettings,
    entry="brainfed.methods.mlp.train:train_fedmlp",
    family="federated",
    topology="federated",
    between_sites=BETWEEN_SITES,
    leaves_out=True,
    twins=Twins("localmlp", "centralmlp", apart=NOT_OF_TWINS),
    model="brainfed.methods.mlp.kept:score",
    without_model={"choose": "inner"},
    gpu=True,
    shared_tensors={**NETWORK_TENSORS, **SIZES_TENSORS, **SUMMED_MOMENTS_TENSORS, **CHOICE_TENSORS},
    quick=QUICK_ROUNDS,
    variants={"fedmlp": {}, "fedmlp-centred": {"centre": "subject"}},
)
