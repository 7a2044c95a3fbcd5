"""Ridge classifier: least squares on targets +1 (patient) and -1 with an L2 penalty.

Local: one model an institution. Central: one model on the pooled training subjects, which a
federation may not do: an upper reference for the federated methods.

`ridge-overfitted` is the positive control of the audit: with next to no penalty and more features than
training subjects it gives the margin 1 to each of them, so that an attack on membership must find them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from brainfed.methods.linear.grid import check_grid
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting

ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
TANGENT: Mapping[str, Any] = {
    "kind": "connectivity",
    "connectivity": "tangent",
    "fisher_z": False,
    "reference": "all",
    "shrinkage": 0.5,
}
"""Features of the tangent variants: see the decision on tangent features."""


@dataclass(frozen=True)
class RidgeSettings:
    """Settings of the ridge classifier."""

    training: Literal["local", "central"] = setting(
        "central", "One model an institution, or one on the pooled training subjects."
    )
    standardise: Literal["institution", "none"] = setting(
        "institution",
        "Z-score features with the training subjects of the institution (of the pool, if central), or take them raw.",
    )
    alphas: tuple[float, ...] = setting(
        ALPHAS, "Penalties to choose from by `choice`, for training subjects of mean squared norm 1."
    )
    choice: Literal["leave_one_out", "inner_folds"] = setting(
        "leave_one_out",
        "Squared error that chooses the penalty: of every training subject by a model without it, or of inner folds "
        "that each institution deals for itself, as in `ridge-federated`.",
    )

    def __post_init__(self) -> None:
        check_grid("alphas", self.alphas)


METHOD = Method(
    name="ridge",
    title="Ridge",
    settings=RidgeSettings,
    entry="brainfed.methods.linear.train_ridge:train",
    family="linear",
    topology="setting",
    patterns=True,
    model="brainfed.methods.linear.kept:score_margin",
    shared_tensors={"features": ("subjects", "features"), "labels": ("subjects",), "model": ("parameters",)}
    | {"scaling": ("scaling",)},
    views=True,
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
        "tangent-central": {
            "training": "central",
            "standardise": "none",
            "choice": "inner_folds",
            "features": TANGENT,
        },
        "ridge-overfitted": {"training": "central", "alphas": (1e-6,)},
    },
    on_request=("ridge-overfitted",),
)
