"""Variants, sweeps, experiments and kept models of a plan."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import reduce
from operator import getitem
from typing import Any, NamedTuple, cast, get_args, get_origin

from brainfed.cohort.settings import SplitSettings
from brainfed.configuration import ExperimentSettings, ProjectSettings, known, type_hints, validate
from brainfed.configuration.stages import Regime, Stage, registry
from brainfed.configuration.stages.registry import check_stages, kinds_of, resolve_stages, stage_keys, stage_settings
from brainfed.methods import METHODS, Method
from brainfed.runtime import UserError

Definition = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method with resolved settings, and kind -> stage that its job reads, or a parent of one."""

    name: str
    method: Method
    settings: dict[str, Any]
    stages: Mapping[str, Stage]

    def stage(self, kind: str) -> Stage | None:
        """The stage of that kind; None if it has none."""
        return self.stages.get(kind)

    @property
    def harmonises(self) -> bool:
        """Whether ComBat harmonises its features, or a view of them."""
        features = self.stage("features")
        views = (features, *features.parents) if features else ()
        return any(view.settings.harmonise != "none" for view in views if view.kind.name == "features")

    def stage_settings(self) -> dict[str, dict[str, Any]]:
        """Key of every kind -> the settings of its stage, empty without one."""
        return {kind.key: self.stages[kind.name].values if kind.name in self.stages else {} for kind in registry.KINDS}


@dataclass(frozen=True)
class Experiment:
    """One table: variants on cohorts under a regime.

    Attributes:
        name: name in paths.
        group: name in the config; a swept split gives several experiments one group.
        settings: settings in the config.
        default: whether a run without targets includes it.
    """

    name: str
    group: str
    settings: ExperimentSettings
    cohorts: tuple[str, ...]
    regime: Regime
    split: SplitSettings
    variants: tuple[Variant, ...]
    default: bool

    @property
    def repeats(self) -> int:
        """Number of draws of institutions and folds."""
        return self.split.repeats


# Sweeps: a variant with a list in place of one value expands to one variant a value.
#
# `width: {method: fedgcn, graph: {k: [5, 10]}}` becomes `width-k5` and `width-k10`; several lists give
# their product. A list in the settings of a view (`features: {views: {thickness: {weight: [0.1, 0.2]}}}`) becomes
# `NAME-thickness-weight0.1` and so on. In the same way a list in the split of an experiment expands to one experiment
# a value.


@dataclass(frozen=True)
class Definitions:
    """The definitions of variants in the config.

    `single` has them by name, sweeps expanded; `members` has the names of the expanded ones by the name in the config.
    """

    single: Mapping[str, Definition]
    members: Mapping[str, tuple[str, ...]]


def expand(definitions: Mapping[str, Mapping[str, Any]]) -> Definitions:
    """The definitions with every sweep expanded.

    Raises:
        UserError: a stage's settings are not a mapping, a sweep has no values, or two variants get one name.
    """
    single: dict[str, Definition] = {}
    members: dict[str, tuple[str, ...]] = {}
    for name, definition in definitions.items():
        expanded = _expanded(name, definition)
        for member in expanded:
            if member in single:
                raise UserError(f"variants.{name}: there is another variant {member!r}; rename one of them.")
        single |= expanded
        members[name] = tuple(expanded)
    return Definitions(single, members)


def expand_split(name: str, split: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Name of the resulting experiment -> its split; a UserError if a sweep has no values, or a value twice."""
    axes = _axes(f"experiments.{name}", [_Scope(("split",), split, SplitSettings)])
    swept = _product(f"experiments.{name}", name, {"split": dict(split)}, axes)
    return {member: definition["split"] for member, definition in swept.items()}


def swept_values(split: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The swept keys of an experiment's split, and their values in the config."""
    return {axis.key: axis.values for axis in _axes("", [_Scope(("split",), split, SplitSettings)])}


class _Scope(NamedTuple):
    """The parent keys of settings (empty: none), their values, and their dataclass."""

    place: tuple[str, ...]
    values: Mapping[str, Any]
    kind: type


class _Axis(NamedTuple):
    """One key with several values, below `place`."""

    place: tuple[str, ...]
    key: str
    values: list[Any]


def _expanded(name: str, definition: Mapping[str, Any]) -> dict[str, Definition]:
    where = f"variants.{name}"
    for stage in stage_keys():
        values = definition.get(stage) or {}
        if not isinstance(values, Mapping):
            raise UserError(f"{where}.{stage}: expected keys with values, found {values!r}; change it.")
    scopes: list[_Scope] = []
    if method := METHODS.get(str(definition.get("method"))):
        scopes = [_Scope((), definition, method.settings)]
        for stage, kind in stage_settings(method).items():
            scopes += _within(_Scope((stage,), definition.get(stage) or {}, kind))
    return _product(where, name, definition, _axes(where, scopes))


def _within(scope: _Scope) -> Iterator[_Scope]:
    """The settings of a stage, and those of each of its named parts (views)."""
    yield scope
    for key, hint in type_hints(scope.kind).items():
        parts, inner = scope.values.get(key), next(filter(is_dataclass, get_args(hint)), None)
        if inner is not None and isinstance(parts, Mapping):
            for name, values in parts.items():
                if isinstance(values, Mapping):
                    yield _Scope((*scope.place, key, str(name)), values, cast(type, inner))


def _axes(where: str, scopes: Sequence[_Scope]) -> list[_Axis]:
    axes = []
    for scope in scopes:
        hints = type_hints(scope.kind)
        for field in fields(scope.kind):
            value = scope.values.get(field.name)
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
            # `k`, and `thickness-weight` for one of several views.
            suffix += "-" + "-".join([*axis.place[2:], axis.key.replace("_", "-")]) + _label(value)
        if name + suffix in expanded:
            raise UserError(f"{where}: expected different values to sweep, found {name + suffix!r} twice.")
        expanded[name + suffix] = single
    return expanded


def _is_sweep(value: list[Any], hint: Any) -> bool:
    """Whether a list is a sweep: of a setting that is a list itself, only a list of lists is."""
    return get_origin(hint) is not tuple or (bool(value) and all(isinstance(item, list) for item in value))


def _label(value: Any) -> str:
    """The part after the key in a name: `5` for numbers, `-none` for words, `8x4` for lists."""
    if isinstance(value, bool):
        return "-on" if value else "-off"
    if isinstance(value, list):
        words = any(isinstance(item, str) for item in value) or not value
        return f"-{'-'.join(map(str, value)) or 'none'}" if words else "x".join(map(str, value))
    return str(value) if isinstance(value, int | float) else f"-{value}".replace("_", "-")


def check_definition(project: ProjectSettings, name: str, definition: Definition) -> None:
    """Refuse (UserError) a variant of a config with an unknown method or setting, also one that no experiment uses."""
    where = f"variants.{name}"
    method, _ = _method_settings(where, definition)
    check_stages(project, method, definition, where)


def resolve_variant(project: ProjectSettings, name: str, definition: Definition, regime: Regime) -> Variant:
    """A variant under a regime, with its stages; a UserError names an unknown method or setting, and the nearest."""
    where = f"variants.{name}"
    method, settings = _method_settings(where, definition)
    return Variant(name, method, settings, resolve_stages(project, method, definition, where, regime))


def is_allowed(definition: Definition, regime: Regime) -> bool:
    """Whether a regime allows all stages of a variant."""
    return all(kind.allowed(regime) for kind in kinds_of(METHODS[str(definition["method"])]))


def _method_settings(where: str, definition: Definition) -> tuple[Method, dict[str, Any]]:
    """The method of a variant, and all its settings."""
    if "method" not in definition:
        raise UserError(f"{where}: `method` is missing; name one of {', '.join(sorted(METHODS))}.")
    method: Method = known(str(definition["method"]), METHODS, f"{where}.method", "method")
    read = stage_settings(method)
    for key in stage_keys():
        if definition.get(key) and key not in read:
            raise UserError(f"{where}.{key}: method {method.name!r} reads no {key}; remove the key.")
    own = {key: value for key, value in definition.items() if key not in ("method", *stage_keys())}
    return method, asdict(validate(method.settings, own, where))


# The models that a run keeps for new patients, and why it keeps no others.

REPEAT = 0
"""The repeat whose institutions and folds a kept model has."""


@dataclass(frozen=True)
class KeptModel:
    """The model of one variant on one cohort, of the first repeat.

    `regime` is that of the first experiment with the variant and the cohort, `split` its split, both by name.
    """

    cohort: str
    regime: str
    split: str
    variant: Variant


def kept_models(project: ProjectSettings, experiments: Iterable[Experiment]) -> tuple[KeptModel, ...]:
    """The models of the variants under `models`, by cohort and variant.

    Raises:
        UserError: no experiment with true labels has such a variant, its method keeps no model, or its features need
            more than a series.
    """
    models: dict[tuple[str, str], KeptModel] = {}
    variants: dict[str, Variant] = {}
    for experiment in (each for each in experiments if each.regime.labels == "true"):
        for variant in experiment.variants:
            variants.setdefault(variant.name, variant)
            for cohort in experiment.cohorts if variant.name in project.models else ():
                model = KeptModel(cohort, experiment.regime.name, experiment.regime.split, variant)
                models.setdefault((variant.name, cohort), model)
    for name in project.models:
        known(name, variants, "config: models", "variant of an experiment with true labels")
    for (name, _), model in models.items():
        if problem := _lacking_of_method(model.variant) or _lacking_of_features(model.variant):
            raise UserError(
                f"config: models: expected a variant that scores a patient alone, found {name!r}, {problem}"
            )
    return tuple(models[key] for key in sorted(models))


def _lacking_of_method(variant: Variant) -> str:
    """Why the method of a variant keeps no model; empty if it does."""
    method = variant.method
    if {"graph", "fused"} & set(method.needs):
        return (
            f"whose method {method.name!r} compares a patient with training subjects in a graph: their features would "
            "have to leave with the model; name a variant without a graph."
        )
    if not method.capabilities.model:
        return f"whose method {method.name!r} keeps no model; name a linear model or a multilayer perceptron."
    without = method.capabilities.without_model.items()
    hindering = {key: value for key, value in without if variant.settings.get(key) == value}
    return f"which keeps no model under `{_written(hindering)}`; change that setting." if hindering else ""


def _lacking_of_features(variant: Variant) -> str:
    """Why a new patient's series does not give the features of a variant; empty if it does."""
    settings = variant.stages["features"].settings
    if settings.views:
        return "whose features have several views; name a variant of connectivity alone."
    plain = {"kind": "connectivity", "harmonise": "none", "selection": "none"}
    differs = {key: value for key in plain if (value := getattr(settings, key)) != plain[key]}
    if differs:
        return (
            f"whose features have `{_written(differs)}`: a new patient brings region series alone; name a variant "
            "without it."
        )
    return ""


def _written(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in values.items())
