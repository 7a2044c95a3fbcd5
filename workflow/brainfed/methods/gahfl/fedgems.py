"""FedGEMS: distilled on a public set with weights from the entropy of logits (Cheng et al. 2021)."""

from dataclasses import dataclass

from brainfed.methods.gahfl.settings import SelfEvaluatingSettings
from brainfed.methods.gahfl.tensors import DISTILLED_TENSORS
from brainfed.methods.gahfl.twins import TWINS
from brainfed.methods.method import Method


@dataclass(frozen=True)
class FedGEMSSettings(SelfEvaluatingSettings):
    """The federation's settings; the server remembers the last right logits, and weighs institutions by entropy."""


METHOD = Method(
    name="fedgems",
    title="FedGEMS",
    settings=FedGEMSSettings,
    entry="brainfed.methods.gahfl.train:train_fedgems",
    family="federated",
    topology="federated",
    twins=TWINS,
    needs=("series", "public"),
    gpu=True,
    on_request=("fedgems",),
    shared_tensors=DISTILLED_TENSORS,
    variants={"fedgems": {}},
)
