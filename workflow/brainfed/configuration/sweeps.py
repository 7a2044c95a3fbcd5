"""Sweeps: a variant with a list where one value belongs stands for one variant a value.

`width: {method: fedgcn, graph: {k: [5, 10]}}` becomes `width-k5` and `width-k10`; several lists give
their product.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_origin, get_type_hints

from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.methods.registry import METHODS
from brainfed.runtime.errors import UserError

Definition = dict[str, Any]

STAGE_SETTINGS: Mapping[str, type] = {"features": FeatureSettings, "graph": GraphSettings}
"""Keys of a variant that hold the settings of a stage that differ."""


@dataclass(frozen=True)
class Definitions:
    """What the config calls variants.

    Attributes:
        single: name -> definition, sweeps expanded.
        members: name as the config writes it -> names of `single`, in order; one unless it is a sweep.
    """

    single: Mapping[str, Definition]
    members: Mapping[str, tuple[str, ...]]


def expand(definitions: Mapping[str, Mapping[str, Any]]) -> Definitions:
    """Expand every sweep.

    Raises:
        UserError: a stage's settings are no mapping, a sweep has no values, or two variants get one name.
    """
    single: dict[str, Definition] = {}
    members: dict[str, tuple[str, ...]] = {}
    for name, definition in definitions.items():
        expanded = _expanded(name, definition)
        taken = [member for member in expanded if member in single]
        if taken:
            raise UserError(f"variants.{name}: there is another variant {taken[0]!r}; rename one of them.")
        single |= expanded
        members[name] = tuple(expanded)
    return Definitions(single, members)


def _expanded(name: str, definition: Mapping[str, Any]) -> dict[str, Definition]:
    axes = _axes(name, definition)
    expanded: dict[str, Definition] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        variant = {key: dict(value) if isinstance(value, Mapping) else value for key, value in definition.items()}
        suffix = ""
        for axis, value in zip(axes, values, strict=True):
            (variant[axis.stage] if axis.stage else variant)[axis.key] = value
            suffix += f"-{axis.key.replace('_', '-')}{_label(value)}"
        if name + suffix in expanded:
            raise UserError(f"variants.{name}: expected different values to sweep, found {name + suffix!r} twice.")
        expanded[name + suffix] = variant
    return expanded


@dataclass(frozen=True)
class _Axis:
    """One key with several values; `stage` is empty for the method's own settings."""

    stage: str
    key: str
    values: list[Any]


def _axes(name: str, definition: Mapping[str, Any]) -> list[_Axis]:
    method = METHODS.get(str(definition.get("method")))
    scopes: list[tuple[str, Mapping[str, Any], type]] = [("", definition, method.settings)] if method else []
    for stage, kind in STAGE_SETTINGS.items():
        held = definition.get(stage) or {}
        if not isinstance(held, Mapping):
            raise UserError(f"variants.{name}.{stage}: expected keys with values, found {held!r}; change it.")
        scopes.append((stage, held, kind))
    axes = []
    for stage, held, kind in scopes:
        hints = get_type_hints(kind)
        for field in fields(kind):
            value = held.get(field.name)
            if isinstance(value, list) and _is_sweep(value, hints[field.name]):
                if not value:
                    where = ".".join(part for part in (name, stage, field.name) if part)
                    raise UserError(f"variants.{where}: expected one value or several to sweep, found an empty list.")
                axes.append(_Axis(stage, field.name, value))
    return axes


def _is_sweep(value: list[Any], hint: Any) -> bool:
    """Where the setting itself is a list, only a list of lists is a sweep."""
    return get_origin(hint) is not tuple or (bool(value) and all(isinstance(item, list) for item in value))


def _label(value: Any) -> str:
    """`5` for numbers, `-none` for words, `8x4` for lists: what stands after the key in a name."""
    if isinstance(value, bool):
        return "-on" if value else "-off"
    if isinstance(value, list):
        words = any(isinstance(item, str) for item in value) or not value
        return f"-{'-'.join(map(str, value)) or 'none'}" if words else "x".join(map(str, value))
    return str(value) if isinstance(value, int | float) else f"-{value}".replace("_", "-")
