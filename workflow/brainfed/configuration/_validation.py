"""Typed validation of settings dataclasses, with sentences that name the remedy.

The only module that imports pydantic, which validates the rooms' own dataclasses and reads bounds and descriptions from
the metadata of their fields (`runtime.setting`).
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticKnownError, SchemaValidator, core_schema

from brainfed.cohort import NO_COVARIATES, NO_NUMBERS
from brainfed.runtime import UserError

Settings = TypeVar("Settings")

CONFIG = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)


def validate(kind: type[Settings], values: Any, where: str) -> Settings:
    """The settings dataclass `kind` with the plain `values` of a YAML file.

    Raises:
        UserError: names the place (`where`, as `config.yaml: variants.fedgcn`), the key, the value found, the allowed
            ones and the nearest valid name.
    """
    try:
        return cast(Settings, _validator(cast(type, kind)).validate_python([values])[0])
    except ValidationError as error:
        raise UserError(f"{where}: {_sentences(kind, error)[0]}") from None


def mistakes(kind: type, values: Any, where: str) -> list[str]:
    """Every sentence with which `validate` would refuse plain `values`, not the first alone."""
    try:
        _validator(kind).validate_python([values])
    except ValidationError as error:
        return [f"{where}: {sentence}" for sentence in _sentences(kind, error)]
    return []


@cache
def type_hints(kind: type) -> dict[str, Any]:
    """The types of a settings dataclass's fields, evaluated once."""
    return get_type_hints(kind)


@cache
def adapter(kind: type) -> TypeAdapter[list[Any]]:
    """Pydantic's adapter of a list of settings: a dataclass takes no config itself, but that of the list around it."""
    return TypeAdapter(list[kind], config=CONFIG)  # type: ignore[valid-type]


@cache
def _validator(kind: type) -> SchemaValidator:
    return SchemaValidator(_reading_yaml(adapter(kind).core_schema))


def _reading_yaml(schema: Any) -> Any:
    """A core schema that accepts YAML's words `none`, `off` and `true`, and no booleans as numbers."""
    if isinstance(schema, list):
        return [_reading_yaml(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    read: Any = {key: _reading_yaml(part) for key, part in schema.items()}
    reader = _reader(schema)
    return read if reader is None else core_schema.no_info_before_validator_function(reader, read)


def _reader(schema: Mapping[str, Any]) -> Callable[[Any], Any] | None:
    """The function that turns YAML's reading of a word into the value that this part of a core schema expects."""
    match schema:
        case {"type": "str"}:
            return _text
        case {"type": "int"}:
            return lambda value: _no_boolean(value, "int_type")
        case {"type": "float"}:
            return lambda value: 0.0 if value is False or value == "off" else _no_boolean(value, "float_type")
        case {"type": "nullable", "schema": {"type": "float"}}:
            return lambda value: None if value is False or value in ("none", "off") else value
        case {"type": "nullable"}:
            return lambda value: None if value == "none" else value
        case {"type": "literal", "expected": choices} if "true" in choices:
            return lambda value: "true" if value is True else value
    return None


NOT_YET = {"target": f"cohorts.NAME.target names a class, and {NO_NUMBERS}", "covariates": NO_COVARIATES}
"""Unknown key in any settings -> what does not exist yet."""
REWRITTEN = re.compile(r"_|^\s*[-+]?0\d+\s*$", re.ASCII)
"""Part of a text that pydantic and YAML may read as different numbers."""


def _text(value: Any) -> Any:
    """Text; of a number with a point YAML has not kept the spelling: 1.10 is 1.1."""
    if isinstance(value, float):
        raise PydanticKnownError("string_type")
    return value


def _no_boolean(value: Any, category: Any) -> Any:
    """A number, or text of one; 010 and 1_0 may mean text, or another number elsewhere."""
    if isinstance(value, bool) or (isinstance(value, str) and REWRITTEN.search(value)):
        raise PydanticKnownError(category)
    return value


def nearest(name: str, allowed: Sequence[str]) -> str:
    """`; did you mean X?`, or a full stop."""
    match = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else "."


def _sentences(kind: type, error: ValidationError) -> list[str]:
    """One sentence for each problem; those of settings that contradict each other come last."""
    problems = sorted(error.errors(include_url=False), key=lambda problem: problem["type"] == "value_error")
    return [_sentence(kind, problem) for problem in problems]


def _sentence(kind: type, problem: ErrorDetails) -> str:
    place = [str(part) for part in problem["loc"][1:] if part != "[key]"]
    place = place[:-1] if place[-1:] == ["str"] else place
    location, value, category = ".".join(place), _shown(problem["input"]), problem["type"]
    if category == "value_error":
        return f"{_at(kind, place, str(problem['ctx']['error']).rstrip('.'))}."
    if category == "unexpected_keyword_argument":
        if removed := getattr(kind, "REMOVED", {}).get(location):
            return f"{location}: {removed}."
        allowed = [field.name for field in fields(_kind_at(kind, place[:-1]))]
        if absent := _not_yet(kind, place):
            meant = next((f"did you mean {name!r}?" for name in allowed if place[-1] in name), "remove it.")
            return f"unknown key {location!r}: {absent}; {meant}"
        return f"unknown key {location!r}{nearest(place[-1], allowed)} Allowed here: {', '.join(allowed)}."
    if category == "literal_error":
        choices = re.findall("'(.*?)'", problem["ctx"]["expected"])
        end = nearest(str(problem["input"]), choices)
        if end == "." and (absent := _not_yet(kind, place)):
            end = f"; {absent}."
        return f"{location}: expected one of {', '.join(choices)}, found {value}{end}"
    if category in ("missing", "too_long", "tuple_type"):
        listed = place[:-1] if isinstance(problem["loc"][-1], int) else place
        if (sentence := _of_fixed_list(kind, listed, problem["input"])) is not None:
            return sentence
    if category == "missing":
        return f"{location} is missing; add it."
    prefix = f"{location}: " if location else ""
    return f"{prefix}expected {_expected(problem)}, found {value}; {_remedy(problem)}."


def _not_yet(kind: type, place: Sequence[str]) -> str:
    """The sentence on a key for something that does not exist yet, from `NOT_YET`; else empty."""
    known = {**NOT_YET, **getattr(_kind_at(kind, place[:-1]), "NOT_YET", {})}
    return known.get(place[-1], "") if place else ""


def _at(kind: type, place: Sequence[str], sentence: str) -> str:
    """The sentence of a settings class, which does not know its place, with the whole key in front."""
    if not place:
        return sentence
    first, settings = re.split(r"[.:]", sentence, maxsplit=1)[0], _kind_at(kind, place)
    if is_dataclass(settings) and first in (field.name for field in fields(settings)):
        return f"{'.'.join(place)}.{sentence}"
    return ".".join([*place[:-1], sentence]) if first == place[-1] else f"{'.'.join(place)}: {sentence}"


EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "keys with values",
    "dataclass": "keys with values",
}
"""First word of pydantic's error type -> the expected value."""


def _expected(problem: ErrorDetails) -> str:
    category, context = problem["type"], problem.get("ctx", {})
    if category == "greater_than_equal":
        return f"at least {context['ge']:g}"
    if category == "less_than_equal":
        return f"at most {context['le']:g}"
    return EXPECTED.get(category.split("_")[0], str(problem["msg"]).lower())


def _remedy(problem: ErrorDetails) -> str:
    if problem["type"] == "string_type" and isinstance(problem["input"], bool):
        return "YAML reads yes, no, on and off as true and false: put the word in quotes"
    if problem["type"] == "string_type" and isinstance(problem["input"], float):
        return "YAML does not keep how a number is spelled, as 1.10: put it in quotes"
    return "change it"


def _shown(value: Any) -> str:
    """A value for people, cut where it is long; YAML's words for booleans and nothing."""
    text = {None: "nothing", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else None
    return text or (repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]} ...")


def _of_fixed_list(kind: type, place: Sequence[str], value: Any) -> str | None:
    """The sentence on a setting that is a list of a fixed length; None: the place is none."""
    owner = _kind_at(kind, place[:-1])
    field = {field.name: field for field in fields(owner)}.get(place[-1]) if is_dataclass(owner) else None
    hint = type_hints(owner)[field.name] if field else None
    if field is None or get_origin(hint) is not tuple or Ellipsis in get_args(hint):
        return None
    count, default = len(get_args(hint)), field.default
    example = f", as in {list(default)}" if isinstance(default, tuple) else ""
    content = f"{len(value)} in {_shown(value)}" if isinstance(value, list) else _shown(value)
    return f"{'.'.join(place)}: expected a list of {count} values, found {content}; write {count}{example}."


def _kind_at(kind: Any, place: Sequence[str]) -> Any:
    """The settings at a place inside of `kind`: under a field, or under a name in a mapping."""
    here = kind
    for part in place:
        here = type_hints(cast(type, here))[part] if is_dataclass(here) else get_args(here)[1]
    return here
