"""Resolve the definition of a variant to its stages, parents first."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.registry import kinds_of
from brainfed.configuration.stages.stage import Stage, StageKind, stage_name
from brainfed.configuration.validation import validate
from brainfed.methods.method import Method

Definition = Mapping[str, Any]


def check_stages(project: ProjectSettings, method: Method, definition: Definition, where: str) -> None:
    """Validate the settings of all stages of a variant, also of one that no experiment uses.

    Raises:
        UserError: an unknown setting, with the nearest valid name, or a setting that does not fit.
    """
    above: dict[str, Any] = {}
    for kind in kinds_of(method):
        above[kind.name] = _settings(kind, project, method, definition, above, where)


def resolve_stages(
    project: ProjectSettings, method: Method, definition: Definition, where: str, regime: Regime
) -> dict[str, Stage]:
    """The stages of a variant under a regime by kind.

    Raises:
        UserError: as above, or a stage would read data that the regime hides.
    """
    found: dict[str, Stage] = {}
    for kind in kinds_of(method):
        above = {name: stage.settings for name, stage in found.items()}
        settings = _settings(kind, project, method, definition, above, where)
        parents = [found[name] for name in kind.parents]
        found[kind.name] = _stage(kind, kind.under(settings, method, regime, where), method, parents, regime)
    return found


def with_parents(stage: Stage) -> Iterator[Stage]:
    """A stage and all its parents, parents first."""
    for parent in stage.parents:
        yield from with_parents(parent)
    yield stage


def _settings(
    kind: StageKind,
    project: ProjectSettings,
    method: Method,
    definition: Definition,
    above: Mapping[str, Any],
    where: str,
) -> Any:
    given = {**kind.defaults(project, method), **(definition.get(kind.key) or {})}
    settings = validate(kind.settings_class(method), given, f"{where}.{kind.key}")
    return kind.settled(settings, method, above, where)


def _stage(kind: StageKind, settings: Any, method: Method, parents: Sequence[Stage], regime: Regime) -> Stage:
    own = [_stage(kind, source, method, parents, regime) for source in kind.sources(settings)]
    above = (*own, *parents)
    of_split = kind.reads_split(settings) or any(parent.split for parent in above)
    split = regime.split if of_split else ""
    protocol = regime.protocol if of_split and kind.reads_protocol else ""
    by_fold = kind.fitted(settings) or protocol == "inductive" or any(parent.by_fold for parent in above)
    unnamed = Stage(kind, "", settings, above, split, protocol, by_fold, kind.maker(method))
    return replace(unnamed, name=stage_name(kind.slug(unnamed), kind.content(unnamed)))
