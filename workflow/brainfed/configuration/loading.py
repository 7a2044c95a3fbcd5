"""From the dictionary that Snakemake read to a plan, or one sentence that says what to change."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from brainfed.configuration.plan import Plan, make_plan
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.validation import validate
from brainfed.runtime.errors import UserError


def load_plan(config: Mapping[str, Any]) -> Plan:
    """Validate a whole config and resolve its stages.

    Raises:
        UserError: names the key, the value found, what is allowed and the nearest valid name.
    """
    return make_plan(validate(ProjectSettings, extended(config), "config"))


def extended(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config laid over the one that its key `extends` names (a path from the working directory)."""
    own = {key: value for key, value in config.items() if key != "extends"}
    if "extends" not in config:
        return own
    path = Path(str(config["extends"]))
    if not path.is_file():
        raise UserError(f"config: `extends` names {path}, which is no file; give its path from {Path.cwd()}.")
    base = yaml.safe_load(path.read_text(encoding="utf-8"))
    return overlay(extended(base), own)


def overlay(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """`top` over `base`: mappings are merged key by key, null removes a key, everything else is replaced."""
    merged = {key: value for key, value in base.items() if not (key in top and top[key] is None)}
    for key, value in top.items():
        if key in base and value is None:
            continue
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = overlay(below, value) if both else value  # type: ignore[arg-type]
    return merged
