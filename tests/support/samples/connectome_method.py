"""A method of connectomes for tests of the plan; it has no training."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from brainfed.configuration.planning import _experiments as experiments
from brainfed.configuration.planning import _plan as plan
from brainfed.methods import METHODS, Capabilities

READER = replace(
    METHODS["majority"],
    name="reader",
    title="Reader",
    needs=("connectomes",),
    variants={"reader": {}},
    capabilities=Capabilities(views=True),
)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the method and its variant to the registry, wherever it is imported."""
    methods = MappingProxyType({**METHODS, "reader": READER})
    shipped = MappingProxyType({**plan.SHIPPED_VARIANTS, "reader": {"method": "reader"}})
    for module in (plan, experiments, experiments):
        monkeypatch.setattr(module, "METHODS", methods)
    monkeypatch.setattr(plan, "SHIPPED_VARIANTS", shipped)
