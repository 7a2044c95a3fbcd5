"""FedAvg and FedProx over the convolutions of a GIN (McMahan et al. 2017; Li et al. 2020)."""

from dataclasses import dataclass

from brainfed.methods.classifier_settings import SIZES_TENSORS
from brainfed.methods.gcfl.settings import CONVOLUTIONS, OWN_LAYERS, FederatedGINSettings
from brainfed.methods.method import Method, Twins


@dataclass(frozen=True)
class FedAvgGINSettings(FederatedGINSettings):
    """The federation's settings and the network's."""


METHOD = Method(
    name="fedavg-gin",
    title="FedAvg GIN",
    settings=FedAvgGINSettings,
    entry="brainfed.methods.gcfl.train:train_fedavg",
    family="federated",
    topology="federated",
    between_sites={},
    twins=Twins("selftrain", "central-gin", "Layers before and after the convolutions are every institution's own."),
    needs=("connectomes",),
    gpu=True,
    shared_tensors={**CONVOLUTIONS, **OWN_LAYERS, **SIZES_TENSORS},
    quick={"rounds": 3},
    variants={"fedavg-gin": {}, "fedprox-gin": {"proximal": 0.01}},
)
