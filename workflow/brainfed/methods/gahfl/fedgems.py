"""FedGEMS: distilled on a public set with weights from the entropy of logits (Cheng et al. 2021)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.methods.gahfl.settings import QUICK_CROPS, DistilledSettings, SelfEvaluationSettings
from brainfed.methods.gahfl.tensors import DISTILLED_TENSORS
from brainfed.methods.gahfl.twins import TWINS
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class FedGEMSSettings(DistilledSettings, SelfEvaluationSettings):
    """The federation's settings; the server remembers the last right logits, and weighs institutions by entropy."""

    epsilon: float = setting(
        0.75,
        "Share of the labels in the loss of samples that are wrong, forgotten or never right; 0.75 in FedGEMS.",
        minimum=0,
        maximum=1,
    )
    ensemble: Literal["right", "all"] = setting(
        "right",
        "Institutions that teach a sample that was never right. right: those whose network is right, as in FedGEMS. "
        "all: every one, by the entropy of its logits alone.",
    )


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
    quick={"global_epochs": 2, **QUICK_CROPS},
    variants={"fedgems": {}},
)
