"""Rows of the manual's tables: a key, its type with bounds, its default and its meaning."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from brainfed.configuration.project import ExperimentSettings, ProjectSettings
from brainfed.configuration.validation import type_hints

WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
PLURALS = {"text": "texts", "whole number": "whole numbers", "number": "numbers"}
HEAD = ("| key | type | default | meaning |", "|---|---|---|---|")


@dataclass(frozen=True)
class Row:
    """One key, as Markdown.

    Attributes:
        key: its name.
        type: its type and bounds.
        default: its default, `required` without one.
        meaning: its description.
    """

    key: str
    type: str
    default: str
    meaning: str

    def __str__(self) -> str:
        """The row of a table."""
        return f"| `{self.key}` | {self.type} | {self.default} | {self.meaning} |"


@cache
def rows(kind: type, path: str = "") -> tuple[Row, ...]:
    """A row for each field of a settings dataclass, in their order.

    Args:
        kind: the dataclass.
        path: where its keys stand in a config, with a full stop at the end: `cohorts.NAME.`; empty: at the top.
    """
    hints = type_hints(kind)
    return tuple(
        Row(
            field.name,
            _type_of(path, field, hints[field.name]),
            default(field),
            str(field.metadata.get("description", "")).replace("|", "\\|"),
        )
        for field in fields(kind)
    )


def table(listed: Iterable[Row | str]) -> str:
    """Rows under their heading."""
    return "\n".join([*HEAD, *map(str, listed)]) + "\n"


def link(title: str, words: str = "") -> str:
    """A link to the heading `title` of this page, under other words where they are named."""
    return f"[{words or title}](#{anchor(title)})"


def anchor(title: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-")


def dataclass_in(hint: Any) -> type | None:
    """The settings that a field of type `hint` holds, one or several by name; None for a plain value."""
    for candidate in (hint, *get_args(hint)):
        if is_dataclass(candidate):
            return cast(type, candidate)
    return None


def many(hint: Any) -> str:
    """The placeholder in a path for each of several names; empty for a single one."""
    return ".NAME" if get_origin(hint) in (dict, Mapping) else ""


def default(field: "Field[Any]") -> str:
    """A field's default; `required` without one."""
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


def _type_of(path: str, field: "Field[Any]", hint: Any) -> str:
    """Type with bounds; a link where the keys have a section of their own."""
    if dataclass_in(hint) is not None or (field in fields(ProjectSettings) and field.name == "variants"):
        return f"keys of {link(f'{path}{field.name}{many(hint)}')}"
    if field in fields(ExperimentSettings) and field.name == "split":
        return "keys of [split](#split)"
    low, high = field.metadata.get("ge"), field.metadata.get("le")
    bounds = f" ≥\N{NO-BREAK SPACE}{low:g}" if low is not None else ""
    bounds = f", {low:g} to {high:g}" if low is not None and high is not None else bounds
    *choices, last = _choices(hint)
    # A bound is a number's, and a number has no other choice beside it but none.
    if bounds and choices:
        return f"{choices[0]}{bounds} or {last}"
    return (f"{', '.join(choices)} or {last}" if choices else last) + bounds


def _choices(hint: Any) -> list[str]:
    """What a value may be, each possibility for itself."""
    if type(None) in get_args(hint):
        return [choice for part in get_args(hint) if part is not type(None) for choice in _choices(part)] + ["none"]
    if get_origin(hint) is Literal:
        return [f"`{choice}`" for choice in get_args(hint)]
    if get_origin(hint) in (Union, UnionType):
        return [choice for part in get_args(hint) for choice in _choices(part)]
    return [_plain(hint)]


def _plain(hint: Any) -> str:
    """The words for a type that is no choice."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple and Ellipsis in arguments:
        *choices, last = [PLURALS.get(choice, choice) for choice in _choices(arguments[0])]
        return f"list of {', '.join(choices)} or {last}" if choices else f"list of {last}"
    if origin is tuple:
        return f"{len(arguments)} {PLURALS[_plain(arguments[0])]}"
    if origin in (dict, Mapping):
        *choices, last = _choices(arguments[1])
        return f"NAME: {', '.join(choices)} or {last}" if choices else f"NAME: {last}"
    return WORDS[hint]
