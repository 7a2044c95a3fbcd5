"""GAHFL and what it is compared with: recurrent networks alone, pooled, and taught on public subjects."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from brainfed.federation import ROBUSTNESS_KEYS, RobustnessSettings
from brainfed.methods import Capabilities, Comparison, Crossing, Method
from brainfed.methods.fglbc.declaration import POOLED_SERIES
from brainfed.runtime import setting

Kind = Literal["lstm", "gru", "bilstm", "slstm"]
KINDS: tuple[Kind, ...] = ("lstm", "gru", "bilstm", "slstm")
QUICK_CROPS: Mapping[str, Any] = {"length": 12, "crops": 2, "hidden": 4, "rounds": 2, "local_epochs": 2, "batch": 16}
"""Small networks on short crops (`Method.quick`)."""

MODEL = "Kind of the global network (Table II)."
POOL = (
    "How long the server remembers a sample that was right. training: to the end, and no institution teaches it again. "
    "round: until the next round begins."
)


@dataclass(frozen=True)
class CropSettings:
    """Crops of region series, and the networks that read them."""

    length: int = setting(90, "Time points of a crop.", minimum=2)
    crops: int = setting(
        10, "Crops a subject, at random places of its scan; its score is the mean over them.", minimum=1
    )
    short: Literal["wrap", "drop"] = setting(
        "wrap",
        "Scans shorter than a crop. wrap: they start again at their end. drop: they train nothing; those that are "
        "tested are wrapped.",
    )
    hidden: int = setting(32, "Width of the recurrent state.", minimum=1)
    dropout: float = setting(0.25, "Share of the vector after pooling that a step drops.", minimum=0, maximum=0.95)


@dataclass(frozen=True)
class StepSettings:
    """Steps of the training of a network."""

    rounds: int = setting(40, "Communication rounds; points of the curve of a network that trains alone.", minimum=1)
    local_epochs: int = setting(35, "Epochs a round of an institution's network.", minimum=1)
    batch: int = setting(256, "Crops a step.", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)


@dataclass(frozen=True)
class AssignmentSettings:
    """The institutions' networks."""

    models: tuple[Kind, ...] = setting(
        KINDS,
        "Kinds of the institutions' networks, in the order of the institutions' names; with more institutions the list "
        "starts again.",
    )
    assignment: Literal["rotate", "fixed"] = setting(
        "rotate", "rotate: every repeat of the cross-validation moves the kinds by one institution; fixed: none does."
    )

    def kinds(self, institutions: int, repeat: int) -> list[Kind]:
        """(M,) kind of each institution's network."""
        moved = repeat if self.assignment == "rotate" else 0
        return [self.models[(place + moved) % len(self.models)] for place in range(institutions)]

    def require_models(self) -> None:
        """Refuse an empty list.

        Raises:
            ValueError: there is no kind.
        """
        if not self.models:
            raise ValueError(f"models: expected one kind or more of {', '.join(KINDS)}, found none")


@dataclass(frozen=True)
class LocalRecurrentSettings(CropSettings, StepSettings, AssignmentSettings):
    """A network in every institution alone."""

    def __post_init__(self) -> None:
        self.require_models()


@dataclass(frozen=True)
class OneRecurrentSettings(CropSettings, StepSettings):
    """One network."""

    local_epochs: int = setting(50, "Epochs a round.", minimum=1)
    model: Kind = setting("bilstm", MODEL)


@dataclass(frozen=True)
class LogitRobustnessSettings:
    """An attack on a federation that exchanges logits, and the server's defence."""

    attack: Literal["none", "paf", "ofom", "label_flip"] = setting(
        "none",
        "What poisoned institutions do. paf: they send the mean of the others' logits plus a vector ten times as long, "
        "in a random direction (eq. 8). ofom: one does so, all others send the mean with it (eq. 9). label_flip: the "
        "labels of their subjects, public ones too, are in reverse order.",
    )
    attacked: float = setting(
        0.25,
        "Share of the institutions that are poisoned, rounded up; a larger share adds to the same ones.",
        minimum=0,
        maximum=1,
    )
    defence: Literal["none", "median", "trimmed_mean"] = setting(
        "none", "The one teacher that takes the place of all institutions: median or trimmed mean of every logit."
    )
    trim: float = setting(
        0.25, "Share of the institutions, rounded up, that trimmed_mean leaves out at each end.", minimum=0, maximum=0.5
    )

    def robustness(self) -> RobustnessSettings:
        """The same settings for all kinds of uploads."""
        return RobustnessSettings(self.attack, self.attacked, self.defence, self.trim)


@dataclass(frozen=True)
class SelfEvaluationSettings:
    """How the global network finds out which public samples it needs help with."""

    self_evaluation: Literal["step", "round"] = setting(
        "step",
        "When the global network finds out which public samples it predicts right. step: in every step, by its own "
        "prediction there, as in Algorithm 1. round: once as a round begins, for all of its steps (GAHFL's section "
        "II-C).",
    )
    pool: Literal["training", "round"] = setting("training", POOL)


@dataclass(frozen=True)
class DistilledSettings(CropSettings, StepSettings, AssignmentSettings, LogitRobustnessSettings):
    """A federation whose institutions exchange logits of public samples."""

    model: Kind = setting("bilstm", MODEL)
    global_epochs: int = setting(50, "Epochs a round of the global network on the public samples.", minimum=1)
    alpha: float = setting(
        5.0, "Weight alpha of the divergence from the global model in an institution's loss (eq. 3).", minimum=0
    )

    def __post_init__(self) -> None:
        self.require_models()
        self.robustness()


def _of_kind(kind: str) -> dict[str, tuple[str, ...]]:
    gates, pooled = f"{kind}-gates", f"{kind}-pooled"
    tensors: dict[str, tuple[str, ...]] = {}
    for direction in ("", "-reverse") if kind == "bilstm" else ("",):
        tensors[f"{kind}.recurrent.weight-ih-l0{direction}"] = (gates, "regions")
        tensors[f"{kind}.recurrent.weight-hh-l0{direction}"] = (gates, "hidden")
        tensors[f"{kind}.recurrent.bias-ih-l0{direction}"] = (gates,)
        tensors[f"{kind}.recurrent.bias-hh-l0{direction}"] = (gates,)
    hidden = 2 if kind == "slstm" else 3
    widths = [pooled, *(f"connected-{number}" for number in range(hidden)), "classes"]
    for number, (before, after) in enumerate(pairwise(widths)):
        tensors[f"{kind}.connected.{number}.weight"] = (after, before)
        tensors[f"{kind}.connected.{number}.bias"] = (after,)
    return tensors


RECURRENT_TENSORS: Mapping[str, tuple[str, ...]] = {
    name: axes for kind in KINDS for name, axes in _of_kind(kind).items()
}
"""Networks of every kind: `KIND.PARAMETER`."""
PUBLIC_TENSORS: Mapping[str, tuple[str, ...]] = {
    "public-series": ("time-points", "regions"),
    "public-labels": ("subjects",),
}
"""Sent once, of the subjects that leave their institution by design."""

DISTILLED_TENSORS: Mapping[str, tuple[str, ...]] = {
    **RECURRENT_TENSORS,
    **PUBLIC_TENSORS,
    "logits": ("public-samples", "classes"),
}
"""An institution uploads logits of the public samples alone, and downloads the global network."""

COMPARISON = Comparison(
    "recurrent-local",
    "recurrent-central",
    "The counterparts keep all their training subjects at home, or pool all of them; no public set is needed. The "
    "kinds of their networks are settings of their own.",
    apart=(
        "model", "models", "assignment", "global_epochs", "alpha", "beta", "gamma", "epsilon", "xi", "momentum",
        "gcna_training", "without", "self_evaluation", "pool", "consensus", "diversity", "ensemble", *ROBUSTNESS_KEYS,
    ),
)  # fmt: skip

RECURRENT_LOCAL = Method(
    name="recurrent-local",
    title="Local recurrent networks",
    settings=LocalRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_local",
    family="graph",
    topology="local",
    needs=("series",),
    on_request=("recurrent-local",),
    crossing=Crossing(RECURRENT_TENSORS),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_CROPS,
    variants={"recurrent-local": {}},
)
"""Every institution's network on all its own training subjects, the local counterpart of GAHFL."""

RECURRENT_CENTRAL = Method(
    name="recurrent-central",
    title="Central recurrent network",
    settings=OneRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_central",
    family="graph",
    topology="central",
    needs=("series",),
    on_request=("recurrent-central",),
    crossing=Crossing(POOLED_SERIES),
    capabilities=Capabilities(gpu=True),
    quick=QUICK_CROPS,
    variants={"recurrent-central": {}},
)
"""GAHFL's global network on the pooled series, which a federation may not train."""

RECURRENT_PUBLIC = Method(
    name="recurrent-public",
    title="Public subjects alone",
    settings=OneRecurrentSettings,
    entry="brainfed.methods.gahfl.train:train_public",
    family="graph",
    topology="central",
    needs=("series", "public"),
    on_request=("recurrent-public",),
    crossing=Crossing({**PUBLIC_TENSORS, **RECURRENT_TENSORS}),
    capabilities=Capabilities(members=False, gpu=True),
    quick=QUICK_CROPS,
    variants={"recurrent-public": {}},
)
"""GAHFL's global network on the public subjects alone, to which a federation may add something or not."""


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


FEDGEMS = Method(
    name="fedgems",
    title="FedGEMS",
    settings=FedGEMSSettings,
    entry="brainfed.methods.gahfl.train:train_fedgems",
    family="federated",
    topology="federated",
    comparison=COMPARISON,
    needs=("series", "public"),
    on_request=("fedgems",),
    crossing=Crossing(DISTILLED_TENSORS),
    capabilities=Capabilities(gpu=True),
    quick={"global_epochs": 2, **QUICK_CROPS},
    variants={"fedgems": {}},
)
"""Distilled on a public set with weights from the entropy of logits (Cheng et al. 2021)."""


@dataclass(frozen=True)
class FedETSettings(DistilledSettings):
    """The federation's settings and the weights of the server's terms, beside the loss of the public labels."""

    consensus: float = setting(
        1.0,
        "Weight of the divergence from the institutions' consensus. It is ours: Fed-ET has no such term, and 0 is its "
        "loss.",
        minimum=0,
    )
    diversity: float = setting(
        0.05, "Weight of the divergence from the institutions that disagree with the consensus.", minimum=0
    )


FEDET = Method(
    name="fedet",
    title="Fed-ET + consensus",
    settings=FedETSettings,
    entry="brainfed.methods.gahfl.train:train_fedet",
    family="federated",
    topology="federated",
    comparison=COMPARISON,
    needs=("series", "public"),
    on_request=("fedet", "fedet-literal"),
    crossing=Crossing(DISTILLED_TENSORS),
    capabilities=Capabilities(gpu=True),
    quick={"global_epochs": 2, **QUICK_CROPS},
    variants={"fedet": {}, "fedet-literal": {"consensus": 0.0}},
)
"""Fed-ET: distilled on a public set with weights from the variance of logits (Cho et al. 2022)."""


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


GAHFL = Method(
    name="gahfl",
    title="GAHFL",
    settings=GAHFLSettings,
    entry="brainfed.methods.gahfl.train:train_gahfl",
    family="federated",
    topology="federated",
    comparison=COMPARISON,
    needs=("series", "public"),
    on_request=("gahfl", "gahfl-no-bce", "gahfl-no-sd", "gahfl-no-wd", "gahfl-no-teachers", "gahfl-literal-gcna"),
    crossing=Crossing(DISTILLED_TENSORS),
    capabilities=Capabilities(gpu=True),
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
"""Networks of different kinds, distilled on a public set with weights of a graph network (Hu et al. 2024)."""
