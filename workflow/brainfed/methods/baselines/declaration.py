"""Baselines that any method should beat: the classes' shares, the phenotype, and head motion."""

from dataclasses import dataclass

from brainfed.methods import Crossing, Method
from brainfed.runtime import setting


@dataclass(frozen=True)
class MajoritySettings:
    """Nothing to set."""


MAJORITY = Method(
    name="majority",
    title="Majority",
    settings=MajoritySettings,
    entry="brainfed.methods.baselines.train:majority",
    family="baseline",
    topology="local",
    needs=(),
    crossing=Crossing({"prevalence": ()}),
    variants={"majority": {}},
)
"""Every subject of an institution gets the share of each class among its training subjects.

A baseline that uses nothing of a subject but the institution.
"""


@dataclass(frozen=True)
class PhenotypeSettings:
    """Settings of the phenotype baseline."""

    cost: float = setting(1.0, "Inverse strength C of the L2 penalty.", minimum=1e-9)


PHENOTYPE = Method(
    name="phenotype",
    title="Phenotype + site",
    settings=PhenotypeSettings,
    entry="brainfed.methods.baselines.train:phenotype",
    family="baseline",
    topology="central",
    needs=(),
    phenotypes=("sex", "age"),
    crossing=Crossing(dict.fromkeys(("site", "sex", "age", "labels"), ("subjects",))),
    variants={"phenotype": {}},
)
"""Phenotype: logistic regression on site, sex and age; no brain.

A method that does not beat this baseline gives no evidence for a use of the brain data.
"""


@dataclass(frozen=True)
class MotionSettings:
    """Settings of the motion baseline."""

    cost: float = setting(1.0, "Inverse strength C of the L2 penalty.", minimum=1e-9)


MOTION = Method(
    name="motion",
    title="Motion",
    settings=MotionSettings,
    entry="brainfed.methods.baselines.train:motion",
    family="baseline",
    topology="central",
    needs=(),
    phenotypes=("mean_fd",),
    crossing=Crossing({"mean_fd": ("subjects",), "labels": ("subjects",)}),
    variants={"motion": {}},
)
"""Logistic regression on mean framewise displacement alone.

A method that does not beat this baseline may score head motion alone.
"""
