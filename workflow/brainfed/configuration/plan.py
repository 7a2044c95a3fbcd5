"""From a validated config to named stages: what runs, under which name, with which settings.

A shared stage is called `slug-digest` after its own resolved settings and those of the stages above
it, so two variants that share it share its files, and switching a setting back finds the old result.
"""

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, get_origin, get_type_hints

from brainfed.cohort.split_settings import SplitSettings
from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.validation import nearest, validate
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS, SHIPPED_VARIANTS
from brainfed.runtime.errors import UserError

FITTED_FEATURES = frozenset({"tangent"})
"""Kinds of features that are fitted on training subjects, and put themselves on the fold axis."""


@dataclass(frozen=True)
class Regime:
    """Who is tested when, and what may be seen: one row of the evaluation's two axes."""

    name: str
    split: str
    protocol: str
    labels: str


@dataclass(frozen=True)
class FeatureStage:
    """Imaging features; `split` is empty unless they are fitted on training subjects."""

    name: str
    settings: FeatureSettings
    split: str

    @property
    def fitted(self) -> bool:
        """Whether every fold has features of its own."""
        return bool(self.split)


@dataclass(frozen=True)
class GraphStage:
    """A population graph."""

    name: str
    settings: GraphSettings
    features: FeatureStage
    split: str
    protocol: str

    @property
    def by_fold(self) -> bool:
        """Whether every fold has a graph of its own."""
        return self.features.fitted or self.protocol == "inductive"


@dataclass(frozen=True)
class Variant:
    """One row of a table: a method, its settings, and the stages that it reads."""

    name: str
    method: Method
    settings: dict[str, Any]
    features: FeatureStage | None
    graph: GraphStage | None


@dataclass(frozen=True)
class Experiment:
    """One table: variants on cohorts under a regime."""

    name: str
    settings: ExperimentSettings
    cohorts: tuple[str, ...]
    regime: Regime
    repeats: int
    variants: tuple[Variant, ...]


@dataclass(frozen=True)
class Plan:
    """All stages of a project by name."""

    project: ProjectSettings
    splits: Mapping[str, SplitSettings]
    features: Mapping[str, FeatureStage]
    graphs: Mapping[str, GraphStage]
    regimes: Mapping[str, Regime]
    experiments: Mapping[str, Experiment]

    def variant(self, regime: str, name: str) -> Variant:
        """The variant of this name under this regime."""
        for experiment in self.experiments.values():
            if experiment.regime.name == regime:
                for variant in experiment.variants:
                    if variant.name == name:
                        return variant
        raise KeyError(f"{regime}/{name}")


def stage_name(slug: str, content: Any) -> str:
    """`slug-digest` over canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def make_plan(project: ProjectSettings) -> Plan:
    """Resolve every experiment of a project.

    Raises:
        UserError: an unknown cohort, variant, method or setting, with the nearest valid name.
    """
    definitions = _expand_sweeps({**SHIPPED_VARIANTS, **project.variants})
    experiments = {
        name: _experiment(project, name, settings, definitions) for name, settings in project.experiments.items()
    }
    variants = [variant for experiment in experiments.values() for variant in experiment.variants]
    features = [variant.features for variant in variants if variant.features]
    graphs = [variant.graph for variant in variants if variant.graph]
    return Plan(
        project,
        {experiment.regime.split: _split(project, experiment.settings) for experiment in experiments.values()},
        {stage.name: stage for stage in features},
        {stage.name: stage for stage in graphs},
        {experiment.regime.name: experiment.regime for experiment in experiments.values()},
        experiments,
    )


def _experiment(
    project: ProjectSettings, name: str, settings: ExperimentSettings, definitions: Mapping[str, Mapping[str, Any]]
) -> Experiment:
    where = f"experiments.{name}"
    for cohort in settings.cohorts:
        _known(cohort, project.cohorts, f"{where}.cohorts", "cohort")
    split = _split(project, settings)
    protocol = settings.protocol or project.protocol
    split_name = _split_name(project, split)
    slug = f"{split_name.rsplit('-', 1)[0]}-{protocol}" + ("-permuted" if settings.labels == "permuted" else "")
    regime = Regime(stage_name(slug, [split_name, protocol, settings.labels]), split_name, protocol, settings.labels)
    chosen = settings.variants or tuple(_expand_sweeps(SHIPPED_VARIANTS))
    expanded: list[str] = []
    for variant in chosen:
        sweep = [key for key, value in definitions.items() if value.get("sweep-of") == variant]
        if not sweep:
            _known(variant, definitions, f"{where}.variants", "variant")
        expanded.extend(sweep or [variant])
    if settings.reference not in expanded:
        raise UserError(
            f"{where}.reference: expected one of the experiment's variants, found {settings.reference!r}"
            f"{nearest(settings.reference, expanded) or '; name one of them.'}"
        )
    variants = tuple(_variant(project, variant, definitions[variant], regime) for variant in expanded)
    return Experiment(name, settings, settings.cohorts or tuple(project.cohorts), regime, split.repeats, variants)


def _split(project: ProjectSettings, settings: ExperimentSettings) -> SplitSettings:
    return validate(SplitSettings, asdict(project.split) | settings.split, "split")


def _split_name(project: ProjectSettings, split: SplitSettings) -> str:
    if split.validation == "leave_one_site_out":
        slug = "leave-one-site-out"
    else:
        parts = f"{split.count}-random" if split.institutions == "random" else split.institutions.replace("_", "-")
        slug = f"{parts}-{split.folds}-fold"
    return stage_name(slug, [split_content(split), project.seed])


def split_content(split: SplitSettings) -> dict[str, Any]:
    """What decides one repeat of a split: everything but the number of repeats, so that more may follow."""
    return {key: value for key, value in asdict(split).items() if key != "repeats"}


def _variant(project: ProjectSettings, name: str, definition: Mapping[str, Any], regime: Regime) -> Variant:
    where = f"variants.{name}"
    if "method" not in definition:
        raise UserError(f"{where}: `method` is missing; name one of {', '.join(sorted(METHODS))}.")
    method = _known(str(definition["method"]), METHODS, f"{where}.method", "method")
    reserved = {"method", "features", "graph", "sweep-of"}
    own = {key: value for key, value in definition.items() if key not in reserved}
    settings = asdict(validate(method.settings, own, where))
    for stage, needed in (("features", method.features), ("graph", method.graph != "none")):
        if definition.get(stage) and not needed:
            raise UserError(f"{where}.{stage}: method {method.name!r} reads no {stage}; remove the key.")
    features = _features(project, definition, regime, where) if method.features else None
    graph = None
    if method.graph != "none" and features is not None:
        given = dict(definition.get("graph") or {})
        merged = asdict(project.graph) | {"scope": method.graph} | given
        graph_settings = validate(GraphSettings, merged, f"{where}.graph")
        content = [features.name, regime.split, regime.protocol, asdict(graph_settings)]
        slug = f"{graph_settings.scope.replace('_', '-')}-k{graph_settings.k}"
        graph = GraphStage(stage_name(slug, content), graph_settings, features, regime.split, regime.protocol)
    return Variant(name, method, settings, features, graph)


def _features(project: ProjectSettings, definition: Mapping[str, Any], regime: Regime, where: str) -> FeatureStage:
    merged = asdict(project.features) | dict(definition.get("features") or {})
    settings = validate(FeatureSettings, merged, f"{where}.features")
    split = regime.split if settings.connectivity in FITTED_FEATURES else ""
    return FeatureStage(stage_name(settings.connectivity, [asdict(settings), split]), settings, split)


def _known(name: str, table: Mapping[str, Any], where: str, what: str) -> Any:
    if name not in table:
        raise UserError(
            f"{where}: unknown {what} {name!r}{nearest(name, list(table)) or '.'} Known: {', '.join(sorted(table))}."
        )
    return table[name]


def _expand_sweeps(definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    expanded: dict[str, dict[str, Any]] = {}
    for name, definition in definitions.items():
        axes = _sweep_axes(definition)
        if not axes:
            expanded[name] = dict(definition)
            continue
        for values in itertools.product(*(axis[2] for axis in axes)):
            variant = {key: dict(value) if isinstance(value, Mapping) else value for key, value in definition.items()}
            suffix = ""
            for (scope, key, _), value in zip(axes, values, strict=True):
                (variant[scope] if scope else variant)[key] = value
                suffix += f"-{key.replace('_', '-')}{value}"
            expanded[name + suffix] = variant | {"sweep-of": name}
    return expanded


def _sweep_axes(definition: Mapping[str, Any]) -> list[tuple[str, str, list[Any]]]:
    method = METHODS.get(str(definition.get("method")))
    scopes: list[tuple[str, Mapping[str, Any], type]] = [
        ("features", definition.get("features") or {}, FeatureSettings),
        ("graph", definition.get("graph") or {}, GraphSettings),
    ]
    if method is not None:
        scopes.insert(0, ("", definition, method.settings))
    axes = []
    for scope, values, kind in scopes:
        hints = get_type_hints(kind)
        for field in fields(kind):
            value = values.get(field.name)
            tuple_valued = get_origin(hints[field.name]) is tuple
            if isinstance(value, list) and (not tuple_valued or all(isinstance(item, list) for item in value)):
                axes.append((scope, field.name, value))
    return axes
