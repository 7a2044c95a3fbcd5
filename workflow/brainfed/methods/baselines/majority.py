"""Majority: every subject of an institution gets the share of each class among its training subjects.

A baseline that uses nothing of a subject but the institution.
"""

from dataclasses import dataclass

from brainfed.methods.method import Method


@dataclass(frozen=True)
class MajoritySettings:
    """Nothing to set."""


METHOD = Method(
    name="majority",
    title="Majority",
    settings=MajoritySettings,
    entry="brainfed.methods.baselines.train:majority",
    family="baseline",
    topology="local",
    needs=(),
    shared_tensors={"prevalence": ()},
    variants={"majority": {}},
)
