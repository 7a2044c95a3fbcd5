"""Linear support vector machine: hinge loss with an L2 penalty.

Local: one model an institution. Central: one model on the pooled training subjects, which a
federation may not do: an upper reference for the federated methods.
"""

from dataclasses import dataclass
from typing import Literal

from brainfed.methods.linear.grid import check_grid
from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class SVMSettings:
    """Settings of the linear support vector machine."""

    training: Literal["local", "central"] = setting(
        "central", "One model an institution, or one on the pooled training subjects."
    )
    standardise: Literal["institution", "none"] = setting(
        "institution",
        "Z-score features with the training subjects of the institution (of the pool, if central), or take them raw.",
    )
    costs: tuple[float, ...] = setting(
        (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        "Values of C to choose from by the accuracy of inner folds, for training subjects of mean squared norm 1.",
    )

    def __post_init__(self) -> None:
        check_grid("svm.costs", self.costs)


METHOD = Method(
    name="svm",
    title="Linear SVM",
    settings=SVMSettings,
    entry="brainfed.methods.linear.train_svm:train",
    family="linear",
    topology="setting",
    patterns=True,
    model="brainfed.methods.linear.kept:score_margin",
    shared_tensors={"features": ("subjects", "features"), "labels": ("subjects",), "model": ("parameters",)},
    quick={"costs": (0.1, 1.0)},
    variants={"svm-local": {"training": "local"}, "svm-central": {"training": "central"}},
)
