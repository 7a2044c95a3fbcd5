"""Motion: logistic regression on mean framewise displacement alone.

A method that does not beat this baseline may score head motion alone.
"""

from dataclasses import dataclass

from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class MotionSettings:
    """Settings of the motion baseline."""

    cost: float = setting(1.0, "Inverse strength C of the L2 penalty.", minimum=1e-9)


METHOD = Method(
    name="motion",
    title="Motion",
    settings=MotionSettings,
    entry="brainfed.methods.baselines.train:motion",
    family="baseline",
    topology="central",
    needs=(),
    phenotypes=("mean_fd",),
    shared_tensors={"mean_fd": ("subjects",), "labels": ("subjects",)},
    variants={"motion": {}},
)
