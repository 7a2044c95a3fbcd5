"""All kinds of stages, each after its parents: those that the modules beside this one declare."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from brainfed.configuration import ProjectSettings, validate
from brainfed.configuration.stages._stage import Regime, Stage, StageKind, stage_name
from brainfed.methods import Method

Definition = Mapping[str, Any]


ORDER = ("features", "connectomes", "series", "public", "graph", "inpainting", "fused")
"""Order of the shipped kinds in plans and in the manual; others follow."""
NO_KIND = "registry"
"""The module of this folder that declares no kind, beside those with an underscore."""
NEEDED = ("name", "key", "folder", "role", "manual")
"""What every kind says, beside the class of its settings."""


def _declared() -> Iterator[StageKind]:
    """The kinds that the modules beside this one assign to names."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem != NO_KIND and not file.stem.startswith("_"):
            module = import_module(f"brainfed.configuration.stages.{file.stem}")
            yield from (_complete(value) for value in vars(module).values() if isinstance(value, StageKind))


def _complete(kind: StageKind) -> StageKind:
    """The kind, with every value that a kind declares.

    Raises:
        ValueError: it lacks one.
    """
    missing = [name for name in NEEDED if not hasattr(kind, name)]
    if not hasattr(kind, "settings") and type(kind).settings_class is StageKind.settings_class:
        missing.append("settings")
    if missing:
        expected, absent = ", ".join((*NEEDED, "settings")), ", ".join(missing)
        raise ValueError(f"{type(kind).__name__}: expected a value for each of {expected}, found none for {absent}")
    return kind


def _after_parents(kinds: dict[str, StageKind]) -> tuple[StageKind, ...]:
    """The kinds in their order, but none before its parents.

    Raises:
        ValueError: a parent is no kind.
    """
    for kind in kinds.values():
        if unknown := sorted({*kind.parents} - {*kinds}):
            known = ", ".join(kinds)
            raise ValueError(f"{kind.name}: parents: expected names of stages ({known}), found {', '.join(unknown)}")

    def with_ancestors(name: str) -> list[str]:
        return [*(each for parent in kinds[name].parents for each in with_ancestors(parent)), name]

    ordered = dict.fromkeys(each for name in (*ORDER, *kinds) for each in with_ancestors(name))
    return tuple(kinds[name] for name in ordered)


KINDS: tuple[StageKind, ...] = _after_parents({kind.name: kind for kind in _declared()})


def kind_of(name: str) -> StageKind:
    """The kind of that name."""
    return next(kind for kind in KINDS if kind.name == name)


def stage_keys() -> tuple[str, ...]:
    """Keys of a variant with settings of its stages."""
    return tuple(kind.key for kind in KINDS)


def kinds_of(method: Method) -> list[StageKind]:
    """The kinds that a method reads, and their parents.

    Raises:
        ValueError: it needs a stage that no kind declares.
    """
    names = {*method.needs}
    if unknown := sorted(names - {kind.name for kind in KINDS}):
        known = ", ".join(kind.name for kind in KINDS)
        raise ValueError(f"{method.name}: needs: expected names of stages ({known}), found {', '.join(unknown)}")
    for kind in reversed(KINDS):
        names |= {*kind.parents} if kind.name in names else set()
    return [kind for kind in KINDS if kind.name in names]


def stage_settings(method: Method) -> dict[str, type]:
    """The keys of a method's stages, and their settings classes."""
    return {kind.key: kind.settings_class(method) for kind in kinds_of(method)}


def check_stages(project: ProjectSettings, method: Method, definition: Definition, where: str) -> None:
    """Refuse (UserError) unknown settings of a variant's stages, and settings that do not fit."""
    above: dict[str, Any] = {}
    for kind in kinds_of(method):
        above[kind.name] = _settings(kind, project, method, definition, above, where)


def resolve_stages(
    project: ProjectSettings, method: Method, definition: Definition, where: str, regime: Regime
) -> dict[str, Stage]:
    """Kind -> stage of a variant under a regime.

    Raises:
        UserError: as `check_stages`, or a stage would read data that the regime hides.
    """
    stages: dict[str, Stage] = {}
    for kind in kinds_of(method):
        above = {name: stage.settings for name, stage in stages.items()}
        settings = kind.under(_settings(kind, project, method, definition, above, where), method, regime, where)
        stages[kind.name] = _stage(kind, settings, method, [stages[name] for name in kind.parents], regime)
    return stages


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
    fitted = bool(getattr(settings, "fitted", False))
    of_split = kind.reads_split or fitted or any(parent.split for parent in above)
    split = regime.split if of_split else ""
    protocol = regime.protocol if of_split and kind.reads_protocol else ""
    by_fold = fitted or protocol == "inductive" or any(parent.by_fold for parent in above)
    unnamed = Stage(kind, "", settings, above, split, protocol, by_fold, kind.maker(method))
    return replace(unnamed, name=stage_name(kind.slug(unnamed), kind.content(unnamed)))
