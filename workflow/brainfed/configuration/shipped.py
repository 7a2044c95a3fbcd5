"""The shipped settings of a method, which distinguish ablations and a paper's numbers from changed settings."""

from dataclasses import asdict
from typing import Any

from brainfed.configuration.defaults import defaults_of
from brainfed.configuration.stages.registry import kinds_of
from brainfed.methods.method import Method
from brainfed.runtime.settings import flat_settings


def shipped_settings(method: Method) -> dict[str, Any]:
    """Every default of a method, its own (`rounds`) and its stages' (`graph.k`)."""
    stages = {kind.key: asdict(kind.settings_class(method)(**kind.of_method(method))) for kind in kinds_of(method)}
    return flat_settings(defaults_of(method.settings), stages)
