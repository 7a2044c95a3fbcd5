"""Methods of region series, without and with public subjects, for tests of the plan; they have no training."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from brainfed.configuration.planning import _experiments as experiments
from brainfed.configuration.planning import _plan as plan
from brainfed.methods import METHODS

LISTENER = replace(METHODS["majority"], name="listener", title="Listener", needs=("series",), variants={"listener": {}})
SHARER = replace(LISTENER, name="sharer", needs=("series", "public"), variants={"sharer": {}})


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the methods and their variants to the registry, wherever it is imported."""
    added = {method.name: method for method in (LISTENER, SHARER)}
    methods = MappingProxyType({**METHODS, **added})
    shipped = MappingProxyType({**plan.SHIPPED_VARIANTS, **{name: {"method": name} for name in added}})
    for module in (plan, experiments, experiments):
        monkeypatch.setattr(module, "METHODS", methods)
    monkeypatch.setattr(plan, "SHIPPED_VARIANTS", shipped)
