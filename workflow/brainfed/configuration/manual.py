"""`config/README.md` and the JSON schema, generated from the settings dataclasses.

    python -m brainfed.configuration.manual

writes both; a test fails when they drift.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

from brainfed.configuration.manual_texts import EXPERIMENTS, EXTENDS, PREAMBLE, VARIANTS
from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.stages import registry
from brainfed.configuration.validation import adapter, type_hints
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS


def main() -> None:
    """Write both files of this checkout."""
    workflow = Path(__file__).resolve().parents[2]
    (workflow / "schemas").mkdir(exist_ok=True)
    (workflow / "schemas" / "config.schema.json").write_text(schema(), encoding="utf-8")
    (workflow.parent / "config" / "README.md").write_text(manual(), encoding="utf-8")


def schema() -> str:
    """JSON schema of one config file, for editors; a file that extends another may leave everything out."""
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


def manual() -> str:
    """The page that lists every key, its type, its default and its meaning."""
    extends = f"| `extends` | text or list | none | {EXTENDS} |"
    sections = [_section("The project", "", ProjectSettings, extends)]
    hints = type_hints(ProjectSettings)
    for field in fields(ProjectSettings):
        inner = _dataclass_in(hints[field.name])
        if field.name == "variants":
            sections.append(_variants())
        elif inner is not None:
            lead = EXPERIMENTS if inner is ExperimentSettings else ""
            sections += _nested(field.name + _many(hints[field.name]), inner, lead)
    sections.append("## Methods\n\n" + "\n".join(f"- [{name}](#method-{name})" for name in METHODS) + "\n")
    sections += [_method_section(method) for method in METHODS.values()]
    sections += _further_sections()
    contents = "\n".join(
        f"- [{title}](#{_anchor(title)})" for section in sections for title in re.findall("^## (.*)$", section, re.M)
    )
    return "\n".join([PREAMBLE, f"{contents}\n", *sections])


def _method_section(method: Method) -> str:
    shipped = []
    for name, differing in method.variants.items():
        parts = [f"{key}: {value}" for key, value in differing.items()]
        settings = ", ".join([*parts, *(["in experiments that name it"] if name in method.on_request else [])])
        shipped.append(f"`{name}`" + (f" ({settings})" if settings else ""))
    links = {kind.name: _link(kind.section(method)) for kind in registry.kinds_of(method)}
    reads = [registry.kind_of(name).reads.format(**links) for name in method.needs]
    lead = f"**{method.title}** reads {' and '.join(reads) or 'no imaging'}. Variants: {', '.join(shipped)}.\n\n"
    return _section(f"method: {method.name}", lead, method.settings).replace("## ", "### ", 1)


def _variants() -> str:
    """The section on variants, with a row for each kind of stage."""
    rows = "\n".join(f"| `{kind.key}` | {kind.manual} |" for kind in registry.KINDS)
    return VARIANTS.replace("STAGES", rows)


def _further_sections() -> list[str]:
    """Settings of stages that a method brings and that the project has no defaults for, each class once."""
    found: dict[str, type] = {}
    for method in METHODS.values():
        for kind in registry.kinds_of(method):
            if kind.section(method) != kind.key:
                found.setdefault(kind.section(method), kind.settings_class(method))
    return [_section(title, "", settings).replace("## ", "### ", 1) for title, settings in found.items()]


def _link(title: str) -> str:
    return f"[{title}](#{_anchor(title)})"


def _nested(path: str, kind: type, lead: str = "") -> Iterator[str]:
    yield _section(path, lead, kind)
    hints = type_hints(kind)
    for field in fields(kind):
        inner = _dataclass_in(hints[field.name])
        if inner is not None:
            yield from _nested(f"{path}.{field.name}{_many(hints[field.name])}", inner)


def _section(title: str, lead: str, kind: type, *rows: str) -> str:
    hints = type_hints(kind)
    path = "" if kind is ProjectSettings else f"{title}."
    listed = [
        f"| `{field.name}` | {_type_of(path, field, hints[field.name])} | {_default(field)} | "
        f"{str(field.metadata.get('description', '')).replace('|', chr(92) + '|')} |"
        for field in fields(kind)
    ]
    summary = f"{(kind.__doc__ or '').strip().splitlines()[0]}\n"
    if not listed:
        return f"## {title}\n\n{lead}{summary}"
    table = "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows, *listed])
    return f"## {title}\n\n{lead}{summary}\n{table}\n"


def _dataclass_in(hint: Any) -> type | None:
    for candidate in (hint, *get_args(hint)):
        if is_dataclass(candidate):
            return cast(type, candidate)
    return None


def _many(hint: Any) -> str:
    """The placeholder in a path for each of several names; empty for a single one."""
    return ".NAME" if get_origin(hint) in (dict, Mapping) else ""


def _anchor(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def _type_of(path: str, field: "Field[Any]", hint: Any) -> str:
    """Type with bounds; a link where the keys have a section of their own."""
    if _dataclass_in(hint) is not None or (field.name == "variants" and not path):
        target = f"{path}{field.name}{_many(hint)}"
        return f"keys of [{target}](#{_anchor(target)})"
    if field in fields(ExperimentSettings) and field.name == "split":
        return "keys of [split](#split)"
    low, high = field.metadata.get("ge"), field.metadata.get("le")
    bounds = [f"at least {low:g}"] if low is not None else []
    bounds = [f"{low:g} to {high:g}"] if low is not None and high is not None else bounds
    optional = type(None) in get_args(hint)
    plain = [part for part in get_args(hint) if part is not type(None)] if optional else [hint]
    return ", ".join([" or ".join(map(_type, plain)), *bounds]) + (" or none" if optional else "")


def _type(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        choices = [f"`{choice}`" for choice in arguments]
        return " or ".join([", ".join(choices[:-1]), choices[-1]] if choices[1:] else choices)
    if origin is tuple and Ellipsis in arguments:
        return f"list of {_type(arguments[0])}"
    if origin is tuple:
        return f"list of {len(arguments)}: {_type(arguments[0])}"
    if origin in (dict, Mapping):
        return f"NAME: {_type(arguments[1])}"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}[hint]


def _default(field: "Field[Any]") -> str:
    value = field.default
    if field.default_factory is not MISSING:
        value = field.default_factory()
    if value is MISSING:
        return "required"
    if is_dataclass(value):
        return "its defaults"
    if isinstance(value, dict) and any(is_dataclass(item) for item in value.values()):
        return ", ".join(f"`{name}`" for name in value)
    if isinstance(value, str) and value:
        return f"`{value}`"
    return "none" if value is None else f"`{json.dumps(value, ensure_ascii=False).replace(chr(34) * 2, chr(39) * 2)}`"


if __name__ == "__main__":
    main()
