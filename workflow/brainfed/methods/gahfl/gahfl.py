"""GAHFL: networks of different kinds, distilled on a public set with weights of a graph network (Hu et al. 2024)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.methods.gahfl.settings import POOL, QUICK_CROPS, DistilledSettings, SelfEvaluationSettings
from brainfed.methods.gahfl.tensors import DISTILLED_TENSORS
from brainfed.methods.gahfl.twins import TWINS
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class GAHFLSettings(DistilledSettings, SelfEvaluationSettings):
    """The federation's settings, and those of the server's memory and graph network."""

    beta: float = setting(1.0, "Weight beta of the loss of forgotten samples (eq. 4).", minimum=0)
    gamma: float = setting(10.0, "Weight gamma of the loss of samples that were never right (eq. 4).", minimum=0)
    epsilon: float = setting(0.5, "Share of the labels in the loss of forgotten samples (eq. 5).", minimum=0, maximum=1)
    xi: float = setting(
        0.4, "Share of the labels in the loss of samples that were never right (eq. 7).", minimum=0, maximum=1
    )
    momentum: float = setting(
        0.8, "Momentum phi of the logits that the server remembers of right samples.", minimum=0, maximum=1
    )
    pool: Literal["training", "round"] = setting("round", POOL)
    gcna_training: Literal["labels", "l_wd"] = setting(
        "labels",
        "labels: the graph network learns weights whose mean prediction fits the public labels. l_wd: it minimises "
        "equation 7 itself, which prefers the institution nearest to the wrong model.",
    )
    without: Literal["none", "bce", "sd", "wd", "teachers"] = setting(
        "none",
        "Term left out (Table IV). bce: right samples are not trained on. sd: forgotten samples are treated as never "
        "right. wd: samples that were never right are not trained on. teachers: they are, on their labels alone.",
    )


METHOD = Method(
    name="gahfl",
    title="GAHFL",
    settings=GAHFLSettings,
    entry="brainfed.methods.gahfl.train:train_gahfl",
    family="federated",
    topology="federated",
    twins=TWINS,
    needs=("series", "public"),
    gpu=True,
    on_request=("gahfl", "gahfl-no-bce", "gahfl-no-sd", "gahfl-no-wd", "gahfl-no-teachers", "gahfl-literal-gcna"),
    shared_tensors=DISTILLED_TENSORS,
    quick={"global_epochs": 2, **QUICK_CROPS},
    variants={
        "gahfl": {},
        "gahfl-no-bce": {"without": "bce"},
        "gahfl-no-sd": {"without": "sd"},
        "gahfl-no-wd": {"without": "wd"},
        "gahfl-no-teachers": {"without": "teachers"},
        "gahfl-literal-gcna": {"gcna_training": "l_wd"},
    },
)
