"""Federated logistic regression: the pooled model from sums over institutions, or FedAvg of a linear model.

Any learning rate that is safe along a signal that all features share is too small for the others, and a few rounds of
FedAvg end far from the minimum. The default needs no learning rate: institutions send gradients, whose sums are those
of the pooled data, and the server minimises by L-BFGS until the gradient vanishes.
"""

from dataclasses import dataclass
from typing import Literal

from brainfed.federation import FederationSettings
from brainfed.methods import (
    QUICK_ROUNDS,
    SIZES_TENSORS,
    SUMMED_MOMENTS_TENSORS,
    Capabilities,
    Comparison,
    Crossing,
    InputSettings,
    Method,
)
from brainfed.methods.linear.declaration import PENALTIES, check_grid
from brainfed.runtime import setting


@dataclass(frozen=True)
class FederatedLogisticSettings(InputSettings, FederationSettings):
    """The solver, and for FedAvg the federation's settings."""

    solver: Literal["lbfgs", "fedavg"] = setting(
        "lbfgs",
        "lbfgs: the server sums gradients and minimises the penalised loss of all training subjects (Nocedal and "
        "Wright 2006, Algorithm 7.4), without noise; of the settings of rounds, Adam and noise none has an effect. "
        "fedavg: Adam at home and the mean of the weights, without a penalty but `weight_decay`; the settings below "
        "have no effect.",
    )
    costs: tuple[float, ...] = setting(
        PENALTIES,
        "Of `lbfgs`: values of C to choose from by the log loss of inner folds of every institution, for training "
        "subjects of mean squared norm 1.",
    )
    tolerance: float = setting(
        1e-3, "Of `lbfgs`: a model has converged at this share of the norm of its first gradient.", minimum=0
    )
    max_rounds: int = setting(
        500, "Of `lbfgs`: most rounds of the final fit, and of all inner fits together.", minimum=1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_grid("logistic-federated.costs", self.costs)


SUMS_TENSORS = {
    "training-subjects": (),
    "squared-norm": (),
    "feature-sum": ("features",),
    "count": ("models",),
    "weight": ("models", "features"),
    "bias": ("models",),
    "weight-gradient": ("models", "features"),
    "bias-gradient": ("models",),
    "loss": ("models",),
    "margin-sum": ("models",),
    "squared-margin-sum": ("models",),
    "feature-margin-sum": ("models", "features"),
    "class-counts": ("models",),
    "inner-count": ("inner-models",),
    "inner-weight": ("inner-models", "features"),
    "inner-bias": ("inner-models",),
    "inner-weight-gradient": ("inner-models", "features"),
    "inner-bias-gradient": ("inner-models",),
    "inner-loss": ("inner-models",),
    "inner-validation-loss": ("inner-models",),
}
"""Sent by `solver: lbfgs`."""

LOGISTIC_FEDERATED = Method(
    name="logistic-federated",
    title="Logistic, federated",
    settings=FederatedLogisticSettings,
    entry="brainfed.methods.logistic_federated.train:train",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "logistic-local",
        "logistic-central",
        "Trained by FedAvg, the model has no penalty, and as many steps as its rounds allow.",
        differs_under={"solver": "fedavg"},
        apart=("solver", "tolerance", "max_rounds"),
    ),
    crossing=Crossing(
        {
            "weight-0": ("features", "classes"),
            "bias-0": ("classes",),
            **SIZES_TENSORS,
            **SUMMED_MOMENTS_TENSORS,
            **SUMS_TENSORS,
        },
        between_sites={},
        leaves_out=True,
        inner_grid="costs",
    ),
    capabilities=Capabilities(
        patterns=True,
        without_patterns={"solver": "fedavg"},
        model="brainfed.methods.logistic_federated.rows:score",
        gpu=True,
    ),
    quick={"costs": (0.1, 1.0), **QUICK_ROUNDS},
    variants={"logistic-federated": {}, "logistic-fedavg": {"solver": "fedavg"}},
)
"""Federated logistic regression: the pooled model from sums over institutions, or FedAvg of a linear model.

Any learning rate that is safe along a signal that all features share is too small for the others, and a few rounds of
FedAvg end far from the minimum. By default institutions send gradients, whose sums are those of the pooled data, and
the server minimises by L-BFGS until the gradient vanishes.
"""
