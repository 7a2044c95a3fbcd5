"""All kinds of stages, each after its parents: those that the modules beside this one declare."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from brainfed.configuration.stages.stage import StageKind
from brainfed.methods.method import Method

ORDER = ("features", "connectomes", "series", "public", "graph", "inpainting", "fused")
"""Order of the shipped kinds in plans and in the manual; others follow."""
NO_KINDS = ("__init__", "regime", "registry", "resolving", "stage")
"""Modules of this room that declare no kind."""


def _declared() -> Iterator[StageKind]:
    """The kind of every module, as it assigns it to a name."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem not in NO_KINDS:
            module = import_module(f"brainfed.configuration.stages.{file.stem}")
            yield from (value for value in vars(module).values() if isinstance(value, StageKind))


def _after_parents(kinds: dict[str, StageKind]) -> tuple[StageKind, ...]:
    found: dict[str, StageKind] = {}

    def add(name: str) -> None:
        for parent in kinds[name].parents:
            add(parent)
        found.setdefault(name, kinds[name])

    for name in (*ORDER, *kinds):
        add(name)
    return tuple(found.values())


KINDS: tuple[StageKind, ...] = _after_parents({kind.name: kind for kind in _declared()})


def kind_of(name: str) -> StageKind:
    """The kind of that name."""
    return next(kind for kind in KINDS if kind.name == name)


def stage_keys() -> tuple[str, ...]:
    """Keys of a variant with settings of its stages."""
    return tuple(kind.key for kind in KINDS)


def kinds_of(method: Method) -> list[StageKind]:
    """The kinds that a method reads, and their parents."""
    found: set[str] = set()
    waiting = list(method.needs)
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += kind_of(name).parents
    return [kind for kind in KINDS if kind.name in found]


def stage_settings(method: Method) -> dict[str, type]:
    """The keys of a method's stages, and their settings classes."""
    return {kind.key: kind.settings_class(method) for kind in kinds_of(method)}
