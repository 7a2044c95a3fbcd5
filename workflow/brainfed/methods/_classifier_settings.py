"""Settings that all classifiers of FedNI's Table V share, and the names of their weights on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brainfed.federation import FederationSettings, RobustnessSettings
from brainfed.runtime import PRECISION_DESCRIPTION, Precision, setting

NETWORK_TENSORS: Mapping[str, tuple[str, ...]] = {
    "weight-0": ("features", "hidden-0"),
    "weight-1": ("hidden-0", "hidden-1"),
    "weight-2": ("hidden-1", "classes"),
    "bias-0": ("hidden-0",),
    "bias-1": ("hidden-1",),
    "bias-2": ("classes",),
}

SIZES_TENSORS: Mapping[str, tuple[str, ...]] = {"training-subjects": ()}
"""Sent with `weighting: subjects`, and with `batch`: the largest institution decides the number of steps."""

MOMENTS_TENSORS: Mapping[str, tuple[str, ...]] = {"feature-mean": ("features",), "feature-sd": ("features",)}
"""Sent by local models under leave-one-site-out alone: the others' moments scale the unseen site."""

SUMMED_MOMENTS_TENSORS: Mapping[str, tuple[str, ...]] = {
    **MOMENTS_TENSORS,
    "constant-features": ("features",),
    "helping-institutions": (),
}
"""Sent under leave-one-site-out alone: sums, from which the mean of the others' moments scales the unseen site."""


@dataclass(frozen=True)
class InputSettings:
    """Scaling of the features for models that train by gradient descent."""

    standardise: Literal["institution", "none"] = setting(
        "institution",
        "z-score every column with the training subjects of the fold and institution, or leave it as it is.",
    )
    precision: Precision = setting("float32", PRECISION_DESCRIPTION)


BETWEEN_SITES: Mapping[str, tuple[str, ...]] = {"choose": ("none",), "attack": ("none",), "defence": ("none",)}
"""Settings of training between real sites."""

QUICK_ROUNDS: Mapping[str, Any] = {"rounds": 3, "local_epochs": 3, "learning_rate": 0.01}
QUICK_EPOCHS: Mapping[str, Any] = {"epochs": 6, "curve_every": 3, "learning_rate": 0.01}
"""What a classifier learns something with in a second, federated and alone (`Method.quick`)."""

CHOICE_TENSORS: Mapping[str, tuple[str, ...]] = {"validation-loss": ("candidates", "rounds"), "choice": ("chosen",)}
"""Sent with `choose: inner` alone."""


ROUNDS_TENSORS: Mapping[str, tuple[str, ...]] = {**SIZES_TENSORS, **SUMMED_MOMENTS_TENSORS, **CHOICE_TENSORS}
"""What a federated classifier may send beside its weights."""


@dataclass(frozen=True)
class ChoiceSettings:
    """Choice of the weight decay and of the number of rounds, as linear models choose their penalty."""

    choose: Literal["none", "inner"] = setting(
        "none",
        "none: `weight_decay` and all rounds, as in the paper. inner: the candidate of `weight_decays` and the round "
        "with the smallest log loss on held-out training subjects, those of the next fold, one training more a "
        "candidate; institutions send their mean losses. At least three folds.",
    )
    weight_decays: tuple[float, ...] = setting(
        (0.0, 0.01, 0.1, 1.0), "Of `choose: inner`: candidates for Adam's L2 penalty, ascending."
    )

    def __post_init__(self) -> None:
        if (
            not self.weight_decays
            or self.weight_decays[0] < 0
            or list(self.weight_decays) != sorted(set(self.weight_decays))
        ):
            raise ValueError(
                "weight_decays: expected one or more numbers from 0 on in ascending order, found "
                f"{list(self.weight_decays)}; leave the key out for the default"
            )

    @property
    def least_folds(self) -> int:
        """Fewest folds: of `choose: inner` one to test, one to choose by and one to learn from."""
        return 3 if self.choose == "inner" else 1


@dataclass(frozen=True)
class ClassifierSettings(ChoiceSettings, InputSettings):
    """A classifier with two hidden layers."""

    centre: Literal["none", "subject"] = setting(
        "none",
        "subject: subtract from each subject's features their mean, at home, before any z-score. Without regression "
        "of the global signal all correlations of a subject rise and fall together; steps of Adam then follow this "
        "direction alone.",
    )
    hidden: tuple[int, int] = setting((64, 32), "Widths of the two hidden layers.")
    dropout: float = setting(
        0.0,
        "Share of the hidden activations that each training step drops; Parisot et al. 2018 drop 0.3 of these and of "
        "the features.",
        minimum=0,
        maximum=0.95,
    )


@dataclass(frozen=True)
class FederatedClassifierSettings(RobustnessSettings, ClassifierSettings, FederationSettings):
    """A classifier in a federation, which may be attacked."""

    def __post_init__(self) -> None:
        ChoiceSettings.__post_init__(self)
        FederationSettings.__post_init__(self)
        RobustnessSettings.__post_init__(self)

    def schedule(self) -> FederationSettings:
        """The rounds."""
        return self


@dataclass(frozen=True)
class EpochSettings:
    """Training without rounds."""

    epochs: int = setting(100, "Epochs.", minimum=1)
    curve_every: int = setting(10, "Epochs between two points of the curves; must divide `epochs`.", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    weight_decay: float = setting(0.0, "Adam's L2 penalty.", minimum=0)


@dataclass(frozen=True)
class SoloSettings(ClassifierSettings, EpochSettings):
    """A classifier without any exchange: in one institution alone, or on pooled data."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs % self.curve_every:
            raise ValueError(f"curve_every: {self.curve_every} does not divide epochs: {self.epochs}")

    def schedule(self) -> FederationSettings:
        """The same training as rounds without exchange or noise, one round a point of the curves."""
        return FederationSettings(
            rounds=self.epochs // self.curve_every,
            local_epochs=self.curve_every,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            noise=0.0,
        )
