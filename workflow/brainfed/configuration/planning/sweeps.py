"""Sweeps: a variant with a list in place of one value expands to one variant a value.

`width: {method: fedgcn, graph: {k: [5, 10]}}` becomes `width-k5` and `width-k10`; several lists give
their product. A list in the settings of a view (`features: {views: {thickness: {weight: [0.1, 0.2]}}}`) becomes
`NAME-thickness-weight0.1` and so on. In the same way a list in the split of an experiment expands to one experiment
a value.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from operator import getitem
from typing import Any, cast, get_args, get_origin

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.stages.registry import stage_keys, stage_settings
from brainfed.configuration.validation import type_hints
from brainfed.methods.registry import METHODS
from brainfed.runtime.errors import UserError

Definition = dict[str, Any]


@dataclass(frozen=True)
class Definitions:
    """The definitions of variants in the config.

    Attributes:
        single: name -> definition, sweeps expanded.
        members: name in the config -> names in `single`, in order; one unless it is a sweep.
    """

    single: Mapping[str, Definition]
    members: Mapping[str, tuple[str, ...]]


def expand(definitions: Mapping[str, Mapping[str, Any]]) -> Definitions:
    """Expand every sweep.

    Raises:
        UserError: a stage's settings are not a mapping, a sweep has no values, or two variants get one name.
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


def expand_split(name: str, split: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The splits of an experiment, by the name of the resulting experiment; a single one unless swept.

    Raises:
        UserError: a sweep has no values, or a value twice.
    """
    axes = _axes(f"experiments.{name}", [_Scope(("split",), split, SplitSettings)])
    swept = _product(f"experiments.{name}", name, {"split": dict(split)}, axes)
    return {member: definition["split"] for member, definition in swept.items()}


def swept_values(split: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The swept keys of an experiment's split, and their values in the config."""
    return {axis.key: axis.values for axis in _axes("", [_Scope(("split",), split, SplitSettings)])}


@dataclass(frozen=True)
class _Scope:
    """The parent keys of settings (empty: none), their values, and their dataclass."""

    place: tuple[str, ...]
    held: Mapping[str, Any]
    kind: type


@dataclass(frozen=True)
class _Axis:
    """One key with several values, below `place`."""

    place: tuple[str, ...]
    key: str
    values: list[Any]

    @property
    def word(self) -> str:
        """The key in a variant's name: `k`, and `thickness-weight` for one of several views."""
        return "-".join([*self.place[2:], self.key.replace("_", "-")])


def _expanded(name: str, definition: Mapping[str, Any]) -> dict[str, Definition]:
    where = f"variants.{name}"
    for stage in stage_keys():
        held = definition.get(stage) or {}
        if not isinstance(held, Mapping):
            raise UserError(f"{where}.{stage}: expected keys with values, found {held!r}; change it.")
    method = METHODS.get(str(definition.get("method")))
    scopes = [_Scope((), definition, method.settings)] if method else []
    for stage, kind in (stage_settings(method) if method else {}).items():
        scopes += _within(_Scope((stage,), definition.get(stage) or {}, kind))
    return _product(where, name, definition, _axes(where, scopes))


def _within(scope: _Scope) -> Iterator[_Scope]:
    """The settings of a stage, and those of each of its named parts (views)."""
    yield scope
    for key, hint in type_hints(scope.kind).items():
        held, inner = scope.held.get(key), next(filter(is_dataclass, get_args(hint)), None)
        if inner is not None and isinstance(held, Mapping):
            for name, values in held.items():
                if isinstance(values, Mapping):
                    yield _Scope((*scope.place, key, str(name)), values, cast(type, inner))


def _axes(where: str, scopes: Sequence[_Scope]) -> list[_Axis]:
    axes = []
    for scope in scopes:
        hints = type_hints(scope.kind)
        for field in fields(scope.kind):
            value = scope.held.get(field.name)
            if isinstance(value, list) and _is_sweep(value, hints[field.name]):
                if not value:
                    key = ".".join(part for part in (where, *scope.place, field.name) if part)
                    raise UserError(f"{key}: expected one value or several to sweep, found an empty list.")
                axes.append(_Axis(scope.place, field.name, value))
    return axes


def _product(where: str, name: str, definition: Mapping[str, Any], axes: Sequence[_Axis]) -> dict[str, Definition]:
    """One definition for each combination of values, by name."""
    expanded: dict[str, Definition] = {}
    for values in itertools.product(*(axis.values for axis in axes)):
        single = deepcopy(dict(definition))
        suffix = ""
        for axis, value in zip(axes, values, strict=True):
            reduce(getitem, axis.place, single)[axis.key] = value
            suffix += f"-{axis.word}{_label(value)}"
        if name + suffix in expanded:
            raise UserError(f"{where}: expected different values to sweep, found {name + suffix!r} twice.")
        expanded[name + suffix] = single
    return expanded


def _is_sweep(value: list[Any], hint: Any) -> bool:
    """For a setting that is a list, only a list of lists is a sweep."""
    return get_origin(hint) is not tuple or (bool(value) and all(isinstance(item, list) for item in value))


def _label(value: Any) -> str:
    """The part after the key in a name: `5` for numbers, `-none` for words, `8x4` for lists."""
    if isinstance(value, bool):
        return "-on" if value else "-off"
    if isinstance(value, list):
        words = any(isinstance(item, str) for item in value) or not value
        return f"-{'-'.join(map(str, value)) or 'none'}" if words else "x".join(map(str, value))
    return str(value) if isinstance(value, int | float) else f"-{value}".replace("_", "-")
