"""Federated ridge: on features, and on tangent connectivity with strong shrinkage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.federation import ROBUSTNESS_KEYS, RobustnessSettings
from brainfed.methods import Capabilities, Comparison, Crossing, Method
from brainfed.methods.linear.declaration import PENALTIES, TANGENT, check_grid
from brainfed.runtime import setting

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
"""Sums over the training subjects of an institution, and the server's answers: see `federation.strategies._krylov` and
`engines.linear._training`. The model goes to an institution without training subjects alone."""

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

BETWEEN_SITES: Mapping[str, tuple[str, ...]] = {"solver": ("conjugate_gradient",)}
"""Settings of training between real sites."""

ZSCORE = (
    "Z-score columns by the moments of all training subjects, which cross as sums; views have settings of their own."
)
APART = ("solver", "rounds", "local_steps", "tolerance", *ROBUSTNESS_KEYS)
"""Settings that shape no model."""


@dataclass(frozen=True)
class RidgeSolverSettings:
    """Ridge regression of all institutions together, equal to that of the pooled data."""

    alphas: tuple[float, ...] = setting(
        PENALTIES,
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
    zscore: bool = setting(True, ZSCORE)

    def __post_init__(self) -> None:
        check_grid("alphas", self.alphas)


@dataclass(frozen=True)
class FederatedRidgeSettings(RobustnessSettings, RidgeSolverSettings):
    """Federated ridge, which may be attacked under `solver: fedavg`."""

    def __post_init__(self) -> None:
        RidgeSolverSettings.__post_init__(self)
        RobustnessSettings.__post_init__(self)
        if self.solver != "fedavg" and (self.attack != "none" or self.defence != "none"):
            key = "attack" if self.attack != "none" else "defence"
            raise ValueError(
                f"{key}: {getattr(self, key)} needs solver: fedavg, whose institutions upload models; "
                "conjugate_gradient adds up their products, and a sum hides who sent what"
            )


CROSSING = Crossing(
    {**RIDGE_TENSORS, **SCALING_TENSORS}, between_sites=BETWEEN_SITES, leaves_out=True, inner_grid="alphas"
)
CAPABILITIES = Capabilities(views=True, patterns=True, model="brainfed.engines.linear.kept:score")

RIDGE_FEDERATED = Method(
    name="ridge-federated",
    title="Ridge, federated",
    settings=FederatedRidgeSettings,
    entry="brainfed.methods.fedtangent.train:train_ridge_federated",
    family="federated",
    topology="federated",
    comparison=Comparison(
        "ridge-local",
        "ridge-central",
        "The counterparts choose their penalty by leave-one-out, the federated ridge by inner folds.",
        apart=APART,
    ),
    crossing=CROSSING,
    capabilities=CAPABILITIES,
    quick={"alphas": (0.1, 1.0, 10.0)},
    variants={"ridge-federated": {}},
)
"""Ridge classifier of a federation: conjugate gradients on sums over institutions, equal to ridge on pooled data."""


@dataclass(frozen=True)
class FedTangentSettings(FederatedRidgeSettings):
    """Settings of federated ridge; tangent features are not z-scored."""

    zscore: bool = setting(False, ZSCORE)


FEDTANGENT = Method(
    name="fedtangent",
    title="FedTangent",
    settings=FedTangentSettings,
    entry="brainfed.methods.fedtangent.train:train_fedtangent",
    family="federated",
    topology="federated",
    comparison=Comparison("tangent-local", "tangent-central", apart=APART),
    options={"features": TANGENT},
    crossing=CROSSING,
    capabilities=CAPABILITIES,
    quick={"alphas": (0.1, 1.0, 10.0)},
    variants={"fedtangent": {}, "fedtangent-fedavg": {"solver": "fedavg", "rounds": 10, "alphas": (0.1,)}},
)
"""Federated ridge on tangent connectivity with strong shrinkage, and other views of a subject."""
