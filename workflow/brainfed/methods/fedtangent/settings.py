"""Settings of federated ridge regression, and the tensors that it sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.methods.linear.grid import check_grid
from brainfed.methods.linear.ridge import ALPHAS
from brainfed.runtime.settings import setting

RIDGE_TENSORS: Mapping[str, tuple[str, ...]] = {
    "count": ("systems",),
    "feature-sum": ("systems", "features"),
    "target-sum": ("systems",),
    "feature-target-sum": ("systems", "features"),
    "direction": ("systems", "features"),
    "product": ("systems", "features"),
    "coefficients": ("systems", "penalties", "directions"),
    "intercepts": ("systems", "penalties"),
    "loss": ("systems", "penalties"),
    "held-out": ("systems",),
    "last-direction": ("models", "features"),
    "last-product": ("models", "features"),
    "last-coefficients": ("models", "directions"),
    "last-intercepts": ("models",),
    "model": ("models", "parameters"),
    "training-subjects": (),
    "curvature": (),
    "weights": ("systems", "penalties", "features"),
    "penalty": ("models",),
}
"""Sums over the training subjects of an institution, and the server's answers: see `federation.strategies.krylov` and
`engines.linear.averaging`. The model goes to an institution without training subjects alone."""

SCALING_TENSORS: Mapping[str, tuple[str, ...]] = {
    "view-counts": ("views",),
    "feature-sums": ("features",),
    "site-counts": ("sites",),
    "site-sums": ("sites", "site-features"),
    "squared-deviations": ("standardised-features",),
    "squared-norms": ("views",),
}
"""Names and axes: uploads of an institution, downloads of the sums of all. Sites and deviations cross only if the
settings of a view ask for them."""

ZSCORE = (
    "Z-score columns by the moments of all training subjects, which cross as sums; views have settings of their own."
)
SOLVER = ("solver", "rounds", "local_steps", "tolerance")
"""Settings that shape no model."""


@dataclass(frozen=True)
class FederatedRidgeSettings:
    """Ridge regression of all institutions together, equal to that of the pooled data."""

    alphas: tuple[float, ...] = setting(
        ALPHAS,
        "Penalties to choose from by the squared error of inner folds, for training subjects of mean squared norm 1.",
    )
    solver: Literal["conjugate_gradient", "fedavg"] = setting(
        "conjugate_gradient",
        "conjugate_gradient: the solution of the pooled data, from one sum a round; fedavg: gradient steps in every "
        "institution, and the mean of the weights, which are sent for all penalties and inner folds.",
    )
    rounds: int = setting(
        100,
        "Rounds of averaging; of conjugate gradients the most directions, fewer once `tolerance` is reached.",
        minimum=1,
    )
    local_steps: int = setting(10, "Gradient steps of an institution in a round of averaging.", minimum=1)
    tolerance: float = setting(
        1e-6,
        "Bound of a score's error, against the solution of the pooled data, at which directions end; for features of "
        "the mean norm.",
        minimum=0,
    )
    zscore: bool = setting(
        True,
        ZSCORE,
    )

    def __post_init__(self) -> None:
        check_grid("alphas", self.alphas)
