"""Settings of recurrent networks on crops of region series, alone and distilled on a public set (Hu et al. 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.runtime.settings import setting

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
        0.25,
        "Share of the institutions, rounded up, that trimmed_mean leaves out at each end.",
        minimum=0,
        maximum=0.5,
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
