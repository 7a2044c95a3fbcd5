"""All kinds of stages, each after its parents. A new kind is one declaration beside these, and one line below."""

from brainfed.configuration.stages.connectomes import CONNECTOMES
from brainfed.configuration.stages.features import FEATURES
from brainfed.configuration.stages.fused import FUSED
from brainfed.configuration.stages.graph import GRAPH
from brainfed.configuration.stages.inpainting import INPAINTING
from brainfed.configuration.stages.public import PUBLIC
from brainfed.configuration.stages.series import SERIES
from brainfed.configuration.stages.stage import StageKind
from brainfed.methods.method import Method

KINDS: tuple[StageKind, ...] = (FEATURES, CONNECTOMES, SERIES, PUBLIC, GRAPH, INPAINTING, FUSED)


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
