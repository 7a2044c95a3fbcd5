"""Typed validation of settings dataclasses, with sentences that a person can act on.

The only place that knows pydantic: models are derived from the rooms' own dataclasses.
"""

import difflib
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, create_model
from pydantic_core import ErrorDetails, PydanticCustomError

from brainfed.runtime.errors import UserError

Settings = TypeVar("Settings")


def validate(kind: type[Settings], values: Any, where: str) -> Settings:
    """Turn plain `values` into the dataclass `kind`.

    Args:
        kind: a settings dataclass.
        values: what the YAML file held.
        where: how the message names the place, for example `config.yaml: variants.fedgcn`.

    Raises:
        UserError: names the key, the value found, what is allowed and the nearest valid name.
    """
    try:
        parsed = model_of(cast(Any, kind)).model_validate(values)
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(kind, error.errors()[0])}") from None
    try:
        return cast(Settings, _to_dataclass(kind, parsed))
    except (ValueError, UserError) as error:
        raise UserError(f"{where}: {str(error).rstrip('.')}.") from None


def mistakes(kind: type, values: Any, where: str) -> list[str]:
    """Every sentence with which `validate` would refuse plain `values`, not the first alone."""
    try:
        validate(kind, values, where)
    except UserError as first:
        try:
            model_of(kind).model_validate(values)
        except ValidationError as error:
            return [f"{where}: {_sentence(kind, problem)}" for problem in error.errors()]
        return [str(first)]
    return []


@cache
def type_hints(kind: type) -> dict[str, Any]:
    """The types of a settings dataclass's fields, evaluated once."""
    return get_type_hints(kind)


@cache
def model_of(kind: Any) -> type[BaseModel]:
    """The pydantic model of a settings dataclass, nested ones included."""
    hints = type_hints(kind)
    definitions: dict[str, Any] = {}
    for field in fields(kind):
        metadata = field.metadata
        default: Any = ...
        if field.default is not MISSING:
            default = field.default
        keywords: dict[str, Any] = {"description": metadata.get("description", "")}
        if field.default_factory is not MISSING:
            keywords["default_factory"] = field.default_factory
            default = MISSING
        for bound, name in (("minimum", "ge"), ("maximum", "le")):
            if metadata.get(bound) is not None:
                keywords[name] = metadata[bound]
        annotation = _model_type(hints[field.name])
        info = Field(**keywords) if default is MISSING else Field(default, **keywords)
        definitions[field.name] = (annotation, info)
    return create_model(
        kind.__name__,
        __config__=ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False),
        __doc__=kind.__doc__,
        **definitions,
    )


def nearest(name: str, allowed: Sequence[str]) -> str:
    """`; did you mean X?`, or a full stop."""
    match = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else "."


def _model_type(hint: Any) -> Any:
    """Replace dataclasses by their models, and allow for the words that YAML reads in its own way."""
    if is_dataclass(hint):
        return model_of(cast(type, hint))
    if hint in (int, float):
        return _number(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal and "true" in arguments:
        return Annotated[hint, BeforeValidator(lambda value: "true" if value is True else value)]
    if origin in (Union, types.UnionType):
        union: Any = Union[tuple(_model_type(argument) for argument in arguments)]  # noqa: UP007
        words = ("none", "off", False) if float in arguments else ("none",)
        return Annotated[union, BeforeValidator(lambda value: None if _is_one_of(value, words) else value)]
    if origin is tuple:
        return tuple[tuple(_model_type(a) if a is not Ellipsis else a for a in arguments)]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, _model_type(arguments[1])]  # type: ignore[misc]
    return hint


def _is_one_of(value: Any, words: tuple[Any, ...]) -> bool:
    """Equality that tells False from 0."""
    return any(value == word and type(value) is type(word) for word in words)


def _number(kind: type) -> Any:
    """YAML's `off` is the number 0.0; no other boolean is a number."""

    def refuse_booleans(value: Any) -> Any:
        if kind is float and (value is False or value == "off"):
            return 0.0
        if isinstance(value, bool):
            raise PydanticCustomError(f"{kind.__name__}_type", "a boolean is no number")
        return value

    return Annotated[kind, BeforeValidator(refuse_booleans)]


def _to_dataclass(kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(value, BaseModel):
        hints = type_hints(cast(type, kind))
        built = {field.name: _to_dataclass(hints[field.name], getattr(value, field.name)) for field in fields(kind)}
        return cast(Any, kind)(**built)
    if isinstance(value, dict):
        inner = get_args(kind)[1] if get_args(kind) else Any
        return {key: _to_dataclass(inner, item) for key, item in value.items()}
    if isinstance(value, BaseModel):
        for argument in get_args(kind):
            if is_dataclass(argument) and argument.__name__ == type(value).__name__:  # type: ignore[union-attr]
                return _to_dataclass(argument, value)
    return value


def _sentence(kind: type, problem: ErrorDetails) -> str:
    parts = problem["loc"][:-1] if problem["loc"][-1:] == ("str",) else problem["loc"]
    place = [str(part) for part in parts if part != "[key]"]
    location, found, category = ".".join(place), _shown(problem["input"]), problem["type"]
    if category == "extra_forbidden":
        if removed := getattr(kind, "REMOVED", {}).get(location):
            return f"{location}: {removed}."
        allowed = _fields_at(kind, problem["loc"][:-1])
        return f"unknown key {location!r}{nearest(place[-1], allowed)} Allowed here: {', '.join(allowed)}."
    if category == "literal_error":
        choices = _choices(problem)
        return (
            f"{location}: expected one of {', '.join(choices)}, found {found}{nearest(str(problem['input']), choices)}"
        )
    if category == "missing":
        position = problem["loc"][-1]
        if isinstance(position, int):
            return f"{'.'.join(place[:-1])}: expected a value number {position + 1}, found {found}; add it."
        return f"{location} is missing; add it."
    prefix = f"{location}: " if location else ""
    return f"{prefix}expected {_expected(problem)}, found {found}; {_remedy(problem)}."


EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "text",
    "bool": "true or false",
    "tuple": "a list",
    "dict": "keys with values",
    "model": "keys with values",
}
"""What the first word of pydantic's error type means."""


def _expected(problem: ErrorDetails) -> str:
    category, context = problem["type"], problem.get("ctx", {})
    if category == "greater_than_equal":
        return f"at least {context['ge']:g}"
    if category == "less_than_equal":
        return f"at most {context['le']:g}"
    if category == "too_long":
        return f"{context['max_length']} values"
    return EXPECTED.get(category.split("_")[0], str(problem["msg"]).lower())


def _remedy(problem: ErrorDetails) -> str:
    if problem["type"] == "string_type" and isinstance(problem["input"], bool):
        return "YAML reads yes, no, on and off as true and false: put the word in quotes"
    return "change it"


def _shown(value: Any) -> str:
    """A value as YAML writes it, cut where it is long."""
    text = {None: "nothing", True: "true", False: "false"}.get(value) if isinstance(value, bool | None) else None
    return text or (repr(value) if len(repr(value)) <= 80 else f"{repr(value)[:80]} ...")


def _choices(problem: ErrorDetails) -> list[str]:
    text = str(problem.get("ctx", {})["expected"])
    return [part.strip().strip("'") for part in text.replace(" or ", ", ").split(",") if part.strip()]


def _fields_at(kind: Any, location: Sequence[int | str]) -> list[str]:
    here: Any = kind
    for part in location:
        if is_dataclass(here):
            here = type_hints(cast(type, here)).get(str(part), Any)
        elif get_origin(here) in (dict, Mapping):
            here = get_args(here)[1]
        if get_origin(here) in (Union, types.UnionType):
            here = next((argument for argument in get_args(here) if is_dataclass(argument)), here)
    return [field.name for field in fields(here)] if is_dataclass(here) else []


def literal_choices(hint: Any) -> tuple[Any, ...]:
    """The allowed values of a Literal, else nothing."""
    return get_args(hint) if get_origin(hint) is Literal else ()
