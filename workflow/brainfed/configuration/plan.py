"""From a validated config to named stages: what runs, under which name, with which settings.

A shared stage is called `slug-digest` after its own resolved settings and those of the stages above
it, so two variants that share it share its files, and switching a setting back finds the old result.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from brainfed.cohort.split_settings import SplitSettings
from brainfed.configuration.names import check_names, known
from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.sweeps import STAGE_SETTINGS, Definition, Definitions, expand
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
        UserError: an unknown cohort, variant, method or setting, with the nearest valid name; a name
            that cannot be part of a path.
    """
    check_names(project)
    definitions = expand({**SHIPPED_VARIANTS, **project.variants})
    for name, definition in definitions.single.items():
        _method_settings(name, definition)
        _features(project, definition, f"variants.{name}")
        _graph(project, definition, f"variants.{name}")
    experiments = {
        name: _experiment(project, name, settings, definitions) for name, settings in project.experiments.items()
    }
    variants = [variant for experiment in experiments.values() for variant in experiment.variants]
    features = [variant.features for variant in variants if variant.features]
    graphs = [variant.graph for variant in variants if variant.graph]
    return Plan(
        project,
        {
            experiment.regime.split: _split(project, experiment.settings, experiment.name)
            for experiment in experiments.values()
        },
        {stage.name: stage for stage in features},
        {stage.name: stage for stage in graphs},
        {experiment.regime.name: experiment.regime for experiment in experiments.values()},
        experiments,
    )


def _experiment(
    project: ProjectSettings, name: str, settings: ExperimentSettings, definitions: Definitions
) -> Experiment:
    where = f"experiments.{name}"
    for cohort in settings.cohorts:
        known(cohort, project.cohorts, f"{where}.cohorts", "cohort")
    regime, repeats = _regime(project, settings, name)
    shipped = [variant for variant in definitions.members if variant in SHIPPED_VARIANTS]
    names: list[str] = []
    for variant in settings.variants or shipped:
        if variant in definitions.single:
            names.append(variant)
        else:
            names += known(variant, definitions.members, f"{where}.variants", "variant")
    twice = [variant for variant in names if names.count(variant) > 1]
    if twice:
        raise UserError(f"{where}.variants: expected every variant once, found {twice[0]!r} twice; remove one.")
    if settings.reference not in names:
        raise UserError(
            f"{where}.reference: expected one of the experiment's variants, found {settings.reference!r}"
            f"{nearest(settings.reference, names)} It has {', '.join(names)}."
        )
    known(settings.local, definitions.single, f"{where}.local", "variant")
    variants = tuple(_variant(project, variant, definitions.single[variant], regime) for variant in names)
    _refuse_equals(where, variants)
    return Experiment(name, settings, settings.cohorts or tuple(project.cohorts), regime, repeats, variants)


def _refuse_equals(where: str, variants: Sequence[Variant]) -> None:
    """Two names for one thing would be trained twice and counted twice by Holm's correction."""
    held: dict[str, str] = {}
    for variant in variants:
        stages = [stage.name if stage else "" for stage in (variant.features, variant.graph)]
        content = stage_name(variant.method.name, [variant.settings, stages])
        if content in held:
            raise UserError(
                f"{where}.variants: {held[content]!r} and {variant.name!r} have the same settings; remove one."
            )
        held[content] = variant.name


def _regime(project: ProjectSettings, settings: ExperimentSettings, experiment: str) -> tuple[Regime, int]:
    """The regime of an experiment, and how often it is repeated."""
    split = _split(project, settings, experiment)
    split_name = _split_name(project, split)
    protocol = settings.protocol or project.protocol
    slug = f"{split_name.rsplit('-', 1)[0]}-{protocol}" + ("-permuted" if settings.labels == "permuted" else "")
    name = stage_name(slug, [split_name, protocol, settings.labels])
    return Regime(name, split_name, protocol, settings.labels), split.repeats


def _split(project: ProjectSettings, settings: ExperimentSettings, experiment: str) -> SplitSettings:
    return validate(SplitSettings, asdict(project.split) | settings.split, f"experiments.{experiment}.split")


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


def _variant(project: ProjectSettings, name: str, definition: Definition, regime: Regime) -> Variant:
    where = f"variants.{name}"
    method, settings = _method_settings(name, definition)
    features = graph = None
    if method.features:
        feature_settings = _features(project, definition, where)
        split = regime.split if feature_settings.connectivity in FITTED_FEATURES else ""
        content = [asdict(feature_settings), split]
        features = FeatureStage(stage_name(feature_settings.connectivity, content), feature_settings, split)
    if method.graph != "none" and features is not None:
        graph_settings = _graph(project, definition, where)
        graph = _graph_stage(graph_settings, features, regime)
    return Variant(name, method, settings, features, graph)


def _method_settings(name: str, definition: Definition) -> tuple[Method, dict[str, Any]]:
    """The method that a variant names, and all its settings."""
    where = f"variants.{name}"
    if "method" not in definition:
        raise UserError(f"{where}: `method` is missing; name one of {', '.join(sorted(METHODS))}.")
    method: Method = known(str(definition["method"]), METHODS, f"{where}.method", "method")
    reads = {"features": method.features, "graph": method.graph != "none"}
    for stage in STAGE_SETTINGS:
        if definition.get(stage) and not reads[stage]:
            raise UserError(f"{where}.{stage}: method {method.name!r} reads no {stage}; remove the key.")
    own = {key: value for key, value in definition.items() if key != "method" and key not in STAGE_SETTINGS}
    return method, asdict(validate(method.settings, own, where))


def _features(project: ProjectSettings, definition: Definition, where: str) -> FeatureSettings:
    return validate(FeatureSettings, asdict(project.features) | (definition.get("features") or {}), f"{where}.features")


def _graph(project: ProjectSettings, definition: Definition, where: str) -> GraphSettings:
    method = METHODS[str(definition["method"])]
    scopes = {"none": project.graph.scope, "local": "local", "global": "global"}
    if project.graph.scope == "global_cut" and method.graph == "local":
        scopes["local"] = "global_cut"
    given = {"scope": scopes[method.graph]} | (definition.get("graph") or {})
    settings = validate(GraphSettings, asdict(project.graph) | given, f"{where}.graph")
    if method.graph == "local" and settings.scope == "global":
        raise UserError(
            f"{where}.graph.scope: method {method.name!r} trains inside institutions, which a `global` graph joins; "
            "use `local`, or `global_cut` for a simulation."
        )
    return settings


def _graph_stage(settings: GraphSettings, features: FeatureStage, regime: Regime) -> GraphStage:
    content = [features.name, regime.split, regime.protocol, asdict(settings)]
    slug = f"{settings.scope.replace('_', '-')}-k{settings.k}"
    return GraphStage(stage_name(slug, content), settings, features, regime.split, regime.protocol)
