"""The JSON schema of a config, for editors, from the settings dataclasses."""

import json
from dataclasses import fields
from typing import Any

from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.stages import registry
from brainfed.configuration.validation import adapter
from brainfed.methods.registry import METHODS

EXTENDS = (
    "Another config (a path from the working directory) that this one is laid over, key by key, or a list of them, "
    "each laid over the one before; lists are replaced, and null takes away a cohort, a variant or an experiment."
)


def schema() -> str:
    """JSON schema of one config file; a file that extends another may leave everything out."""
    definitions = adapter(ProjectSettings).json_schema()["$defs"]
    project = definitions.pop("ProjectSettings")
    properties = project["properties"]
    properties["extends"] = {
        "description": EXTENDS,
        "title": "Extends",
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
    }
    properties["variants"]["additionalProperties"] = _variant_schema()
    definitions["CohortSettings"]["required"] = []
    for key in ("cohorts", "variants", "experiments"):
        properties[key]["additionalProperties"] = {"anyOf": [properties[key]["additionalProperties"], {"type": "null"}]}
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": definitions,
        **project,
        "required": [],
        "anyOf": [{"required": ["extends"]}, {"required": project["required"]}],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _variant_schema() -> dict[str, Any]:
    """Any method with any of the methods' keys: combinations are checked when the config is read."""
    keys = {field.name for method in METHODS.values() for field in fields(method.settings)}
    open_keys: dict[str, Any] = {key: {} for key in sorted(keys | set(registry.stage_keys()))}
    properties = {"method": {"enum": sorted(METHODS), "type": "string"}} | open_keys
    return {"additionalProperties": False, "properties": properties, "type": "object"}
