"""Resolve the definition of a variant to its method, settings and stages."""

from dataclasses import asdict
from typing import Any

from brainfed.configuration.names import known
from brainfed.configuration.planning.experiments import Variant
from brainfed.configuration.planning.sweeps import Definition
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.stages.regime import Regime
from brainfed.configuration.stages.registry import kinds_of, stage_keys, stage_settings
from brainfed.configuration.stages.resolving import check_stages, resolve_stages
from brainfed.configuration.validation import validate
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS
from brainfed.runtime.errors import UserError


def check_definition(project: ProjectSettings, name: str, definition: Definition) -> None:
    """Validate a variant of a config, also one that no experiment uses.

    Raises:
        UserError: an unknown method or setting, with the nearest valid name.
    """
    where = f"variants.{name}"
    method, _ = _method_settings(where, definition)
    check_stages(project, method, definition, where)


def resolve_variant(project: ProjectSettings, name: str, definition: Definition, regime: Regime) -> Variant:
    """A variant under a regime, with its stages.

    Raises:
        UserError: an unknown method or setting, with the nearest valid name.
    """
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
    keys, read = stage_keys(), stage_settings(method)
    for key in keys:
        if definition.get(key) and key not in read:
            raise UserError(f"{where}.{key}: method {method.name!r} reads no {key}; remove the key.")
    own = {key: value for key, value in definition.items() if key != "method" and key not in keys}
    return method, asdict(validate(method.settings, own, where))
