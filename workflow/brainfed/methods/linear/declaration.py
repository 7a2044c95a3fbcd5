"""Linear models with an inner choice of their penalty: ridge, support vectors, logistic regression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from brainfed.methods import Capabilities, Crossing, Method
from brainfed.runtime import setting


def check_grid(key: str, values: Sequence[float]) -> None:
    """Raise `ValueError` unless `values` are positive and ascending without repetition."""
    if not values or min(values) <= 0 or list(values) != sorted(set(values)):
        raise ValueError(
            f"{key}: expected one or more positive numbers in ascending order, found {list(values)}; "
            "leave the key out for the default grid."
        )


PENALTIES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TRAINING = "One model an institution, or one on the pooled training subjects."
STANDARDISE = (
    "Z-score features with the training subjects of the institution (of the pool, if central), or take them raw."
)
TANGENT: Mapping[str, Any] = {
    "kind": "connectivity",
    "connectivity": "tangent",
    "fisher_z": False,
    "reference": "all",
    "shrinkage": 0.5,
}
"""Features of the tangent variants: see the decision on tangent features."""
LINEAR_TENSORS: Mapping[str, tuple[str, ...]] = {
    "features": ("subjects", "features"), "labels": ("subjects",), "model": ("parameters",),
}  # fmt: skip
"""Pooled data of a central model; a local one that helps an institution without training subjects."""


@dataclass(frozen=True)
class RidgeSettings:
    """Settings of the ridge classifier."""

    training: Literal["local", "central"] = setting("central", TRAINING)
    standardise: Literal["institution", "none"] = setting("institution", STANDARDISE)
    alphas: tuple[float, ...] = setting(
        PENALTIES, "Penalties to choose from by `choice`, for training subjects of mean squared norm 1."
    )
    choice: Literal["leave_one_out", "inner_folds"] = setting(
        "leave_one_out",
        "Squared error that chooses the penalty: of every training subject by a model without it, or of inner folds "
        "that each institution deals for itself, as in `ridge-federated`.",
    )

    def __post_init__(self) -> None:
        check_grid("alphas", self.alphas)


RIDGE = Method(
    name="ridge",
    title="Ridge",
    settings=RidgeSettings,
    entry="brainfed.methods.linear.train:train_ridge",
    family="linear",
    topology="setting",
    crossing=Crossing({**LINEAR_TENSORS, "scaling": ("scaling",)}),
    capabilities=Capabilities(views=True, patterns=True, model="brainfed.methods.linear.kept:score_margin"),
    quick={"alphas": (0.1, 1.0, 10.0)},
    variants={
        "ridge-local": {"training": "local"},
        "ridge-central": {"training": "central"},
        "tangent-local": {
            "training": "local",
            "standardise": "none",
            "choice": "inner_folds",
            "features": {**TANGENT, "reference": "institution"},
        },
        "tangent-central": {"training": "central", "standardise": "none", "choice": "inner_folds", "features": TANGENT},
        "ridge-overfitted": {"training": "central", "alphas": (1e-6,)},
    },
    on_request=("ridge-overfitted",),
)
"""Ridge classifier: least squares on targets +1 (patient) and -1 with an L2 penalty.

Local: one model an institution. Central: one model on the pooled training subjects, which a
federation may not do: an upper reference for the federated methods.

`ridge-overfitted` is the positive control of the audit: with next to no penalty and more features than
training subjects it gives the margin 1 to each of them, so that an attack on membership must find them.
"""


@dataclass(frozen=True)
class SVMSettings:
    """Settings of the linear support vector machine."""

    training: Literal["local", "central"] = setting("central", TRAINING)
    standardise: Literal["institution", "none"] = setting("institution", STANDARDISE)
    costs: tuple[float, ...] = setting(
        PENALTIES,
        "Values of C to choose from by the accuracy of inner folds, for training subjects of mean squared norm 1.",
    )

    def __post_init__(self) -> None:
        check_grid("svm.costs", self.costs)


SVM = Method(
    name="svm",
    title="Linear SVM",
    settings=SVMSettings,
    entry="brainfed.methods.linear.train:train_svm",
    family="linear",
    topology="setting",
    crossing=Crossing(LINEAR_TENSORS),
    capabilities=Capabilities(patterns=True, model="brainfed.methods.linear.kept:score_margin"),
    quick={"costs": (0.1, 1.0)},
    variants={"svm-local": {"training": "local"}, "svm-central": {"training": "central"}},
)
"""Linear support vector machine: hinge loss with an L2 penalty.

Local: one model an institution. Central: one model on the pooled training subjects, which a
federation may not do: an upper reference for the federated methods.
"""


@dataclass(frozen=True)
class LogisticSettings:
    """Settings of the logistic regression."""

    training: Literal["local", "central"] = setting("central", TRAINING)
    standardise: Literal["institution", "none"] = setting("institution", STANDARDISE)
    costs: tuple[float, ...] = setting(
        PENALTIES,
        "Values of C to choose from by the log loss of inner folds, for training subjects of mean squared norm 1.",
    )

    def __post_init__(self) -> None:
        check_grid("logistic.costs", self.costs)


LOGISTIC = Method(
    name="logistic",
    title="Logistic regression",
    settings=LogisticSettings,
    entry="brainfed.methods.linear.train:train_logistic",
    family="linear",
    topology="setting",
    crossing=Crossing(LINEAR_TENSORS),
    capabilities=Capabilities(patterns=True, model="brainfed.methods.linear.kept:score_probability"),
    quick={"costs": (0.1, 1.0)},
    variants={"logistic-local": {"training": "local"}, "logistic-central": {"training": "central"}},
)
"""Logistic regression with an L2 penalty.

Local: one model an institution. Central: one model on the pooled training subjects, which a
federation may not do: an upper reference for the federated methods.
"""
