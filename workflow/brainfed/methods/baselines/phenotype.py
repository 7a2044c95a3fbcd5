"""Phenotype: logistic regression on site, sex and age; no brain.

A method that does not beat this baseline gives no evidence for a use of the brain data.
"""

from dataclasses import dataclass

from brainfed.methods.method import Method
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class PhenotypeSettings:
    """Settings of the phenotype baseline."""

    cost: float = setting(1.0, "Inverse strength C of the L2 penalty.", minimum=1e-9)


METHOD = Method(
    name="phenotype",
    title="Phenotype + site",
    settings=PhenotypeSettings,
    entry="brainfed.methods.baselines.train:phenotype",
    family="baseline",
    topology="central",
    needs=(),
    phenotypes=("sex", "age"),
    shared_tensors=dict.fromkeys(("site", "sex", "age", "labels"), ("subjects",)),
    variants={"phenotype": {}},
)
