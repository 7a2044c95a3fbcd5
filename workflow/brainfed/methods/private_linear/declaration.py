"""Federated models under differential privacy: ridge, tangent features, logistic regression, a perceptron.

Neighbouring data sets differ by one subject of one institution, and a server that is not trusted sees every message of
an institution. Everything that is computed from several subjects spends epsilon: gradients, but also means and z-scores
over training subjects, selected columns and references. The rows are therefore made from each subject alone. The
numbers of training subjects are public, as they are for DP-SGD.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.federation import PRIVACY_DESCRIPTION, PRIVACY_KEYS, Calibration, PrivacySettings, PrivateSchedule
from brainfed.methods import NETWORK_TENSORS, SIZES_TENSORS, Capabilities, Comparison, Crossing, Method
from brainfed.methods.linear.declaration import TANGENT
from brainfed.runtime import setting


@dataclass(frozen=True)
class PrivateRowSettings(PrivacySettings):
    """Privacy, and rows that are made from each subject alone."""

    privacy: Calibration = setting("accountant", PRIVACY_DESCRIPTION)
    centre: Literal["none", "subject"] = setting(
        "subject",
        "subject: subtract from each subject's features their mean. Rows are then divided by their norm. Both read one "
        "subject alone and cost no privacy; means and z-scores over training subjects would.",
    )


@dataclass(frozen=True)
class PrivateRidgeSettings(PrivateRowSettings):
    """Gradient steps of the squared loss; few steps from zero are a strong penalty."""

    rounds: int = setting(
        40,
        "Gradient steps, each from one noised sum over all training subjects. A step of size s in each of T rounds "
        "acts as a penalty of n / (s T) on n training subjects of norm 1.",
        minimum=1,
    )
    learning_rate: float = setting(
        1.5,
        "Largest size of a step on the mean loss; below 2 no step diverges, as rows have norm 1. With few subjects or "
        "a small epsilon steps are smaller, so that noise does not outgrow the targets.",
        minimum=0,
        maximum=2,
    )
    balance: Literal["classes", "none"] = setting(
        "classes",
        "classes: every class has the same weight in all, by noised counts of one more round; the most frequent class "
        "has the smaller weights. none: the score of few steps follows the most frequent class.",
    )


@dataclass(frozen=True)
class PrivateNetworkSettings(PrivateRowSettings, PrivateSchedule):
    """Private steps of a network on rows of features."""

    row_norm: float = setting(
        3.0,
        "Norm of a row. One limit clips the whole gradient: longer rows leave more of it to the first layer and less "
        "to intercepts and later layers.",
        minimum=0,
    )
    batch: int = setting(
        0,
        "Expected number of subjects a local step: each training subject is in it with probability batch / training "
        "subjects, and an epoch has training subjects / batch steps; 0: all in one step.",
        minimum=0,
    )
    learning_rate: float = setting(3.0, "Learning rate of the optimiser.", minimum=0)


@dataclass(frozen=True)
class PrivateMLPSettings(PrivateNetworkSettings):
    """Private steps of FedMLP's network."""

    learning_rate: float = setting(
        1.0, "Learning rate of the optimiser; without clipping a third of it is safe.", minimum=0
    )
    hidden: tuple[int, int] = setting((64, 32), "Widths of the two hidden layers.")


STEPS = (*PRIVACY_KEYS, "rounds", "learning_rate", "balance", "centre")
"""Settings of private ridge that no counterpart has."""

NETWORK_STEPS = (*PRIVACY_KEYS, "batch", "optimiser", "learning_rate", "momentum", "row_norm", "centre")
"""Settings of private networks that no counterpart has."""

RIDGE_TENSORS: Mapping[str, tuple[str, ...]] = {
    "class-counts": ("classes",),
    "class-weights": ("classes",),
    "gradient": ("models", "features"),
    "weights": ("models", "features"),
}
"""Noised sums of an institution, and the server's answers to all."""

RIDGE_DP = Method(
    name="ridge-dp",
    title="Ridge, private",
    settings=PrivateRidgeSettings,
    entry="brainfed.methods.private_linear.train:train_ridge_dp",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "ridge-local",
        "ridge-central",
        "The counterparts are not private: they z-score by training subjects and choose a penalty.",
        apart=STEPS,
    ),
    crossing=Crossing({**RIDGE_TENSORS, **SIZES_TENSORS}),
    capabilities=Capabilities(own_features=True),
    quick={"rounds": 3},
    variants={"ridge-dp": {}, "ridge-dp-once": {"rounds": 1, "balance": "none"}, "ridge-no-dp": {"privacy": "none"}},
)
"""Private federated ridge: gradient steps of the squared loss on clipped and noised sums."""

FEDTANGENT_DP = Method(
    name="fedtangent-dp",
    title="FedTangent, private",
    settings=PrivateRidgeSettings,
    entry="brainfed.methods.private_linear.train:train_fedtangent_dp",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "tangent-local", "tangent-central", "The counterparts are not private: they choose a penalty.", apart=STEPS
    ),
    options={"features": {**TANGENT, "reference": "identity"}},
    crossing=Crossing({**RIDGE_TENSORS, **SIZES_TENSORS}),
    capabilities=Capabilities(own_features=True),
    quick={"rounds": 3},
    variants={"fedtangent-dp": {}, "fedtangent-no-dp": {"privacy": "none"}},
)
"""Private FedTangent: private federated ridge on tangent features at the identity, which no other subject enters."""

LOGISTIC_DP = Method(
    name="logistic-dp",
    title="Logistic, private",
    settings=PrivateNetworkSettings,
    entry="brainfed.methods.private_linear.train:train_logistic_dp",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "logistic-local",
        "logistic-central",
        "The counterparts are not private: they z-score by training subjects and choose a penalty.",
        apart=NETWORK_STEPS,
    ),
    crossing=Crossing({"weight-0": ("features", "classes"), "bias-0": ("classes",)}),
    capabilities=Capabilities(own_features=True, gpu=True),
    quick={"rounds": 3},
    variants={"logistic-dp": {}, "logistic-no-dp": {"privacy": "none"}},
)
"""Private federated logistic regression: DP-SGD in every institution, mean of the weights (Abadi et al. 2016)."""

FEDMLP_DP = Method(
    name="fedmlp-dp",
    title="FedMLP, private",
    settings=PrivateMLPSettings,
    entry="brainfed.methods.private_linear.train:train_fedmlp_dp",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "localmlp",
        "centralmlp",
        "The counterparts are not private: they z-score by training subjects, and step by Adam.",
        apart=NETWORK_STEPS,
    ),
    crossing=Crossing(NETWORK_TENSORS),
    capabilities=Capabilities(own_features=True, gpu=True),
    quick={"rounds": 4, "hidden": (8, 4)},
    variants={"fedmlp-dp": {}, "fedmlp-no-dp": {"privacy": "none", "learning_rate": 0.3}},
)
"""Private FedMLP: DP-SGD in every institution, and the mean of the weights (Abadi et al. 2016)."""
