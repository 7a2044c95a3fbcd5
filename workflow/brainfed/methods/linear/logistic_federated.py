"""Federated logistic regression: FedAvg of a linear model, the simplest federated baseline."""

from dataclasses import dataclass

from brainfed.federation.schedule import FederationSettings
from brainfed.methods.classifier_settings import MOMENTS_TENSORS, SIZES_TENSORS, InputSettings
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FederatedLogisticSettings(InputSettings, FederationSettings):
    """The federation's settings and the scaling."""


METHOD = Method(
    name="logistic-federated",
    title="Logistic, federated",
    settings=FederatedLogisticSettings,
    entry="brainfed.methods.linear.train_logistic_federated:train",
    family="federated",
    topology="federated",
    twins=Twins(
        "logistic-local",
        "logistic-central",
        "The twins are fitted to the end with a penalty that inner folds choose; the federated model takes as many "
        "gradient steps as its rounds allow, without that choice.",
    ),
    gpu=True,
    shared_tensors={"weight-0": ("features", "classes"), "bias-0": ("classes",), **SIZES_TENSORS, **MOMENTS_TENSORS},
    variants={"logistic-federated": {}},
)
