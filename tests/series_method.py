"""A method of region series for tests of the plan; it has no training."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from brainfed.configuration.planning import plan, sweeps, variants
from brainfed.methods.registry import METHODS

LISTENER = replace(METHODS["majority"], name="listener", title="Listener", needs=("series",), variants={"listener": {}})


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the method and its variant to the registry, wherever it is imported."""
    methods = MappingProxyType({**METHODS, "listener": LISTENER})
    shipped = MappingProxyType({**plan.SHIPPED_VARIANTS, "listener": {"method": "listener"}})
    for module in (plan, sweeps, variants):
        monkeypatch.setattr(module, "METHODS", methods)
    monkeypatch.setattr(plan, "SHIPPED_VARIANTS", shipped)
