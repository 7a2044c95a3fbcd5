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
        raise UserError(f"{where}: {_sentence(kind, error)}") from None
    try:
        return cast(Settings, _to_dataclass(kind, parsed))
    except ValueError as error:
        raise UserError(f"{where}: {error}.") from None


@cache
def model_of(kind: Any) -> type[BaseModel]:
    """The pydantic model of a settings dataclass, nested ones included."""
    hints = get_type_hints(kind)
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
        __config__=ConfigDict(extra="forbid", coerce_numbers_to_str=True),
        __doc__=kind.__doc__,
        **definitions,
    )


def nearest(name: str, allowed: Sequence[str]) -> str:
    """`; did you mean X?`, or nothing."""
    match = difflib.get_close_matches(name, list(allowed), n=1, cutoff=0.6)
    return f"; did you mean {match[0]!r}?" if match else ""


def _model_type(hint: Any) -> Any:
    """Replace dataclasses by their models; make YAML's `off` a zero and refuse other booleans as numbers."""
    if is_dataclass(hint):
        return model_of(cast(type, hint))
    if hint in (int, float):
        return _number(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return Union[tuple(_model_type(argument) for argument in arguments)]  # noqa: UP007
    if origin is tuple:
        return tuple[tuple(_model_type(a) if a is not Ellipsis else a for a in arguments)]  # type: ignore[misc]
    if origin in (dict, Mapping):
        return dict[str, _model_type(arguments[1])]  # type: ignore[misc]
    return hint


def _number(kind: type) -> Any:
    def refuse_booleans(value: Any) -> Any:
        if value is False or value == "off":
            return kind(0)
        if value is True:
            raise ValueError("expected a number, found true")
        return value

    return Annotated[kind, BeforeValidator(refuse_booleans)]


def _to_dataclass(kind: Any, value: Any) -> Any:
    if is_dataclass(kind) and isinstance(value, BaseModel):
        hints = get_type_hints(cast(type, kind))
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


def _sentence(kind: type, error: ValidationError) -> str:
    problem = error.errors()[0]
    location = ".".join(str(part) for part in problem["loc"])
    found, category = problem["input"], problem["type"]
    if category == "extra_forbidden":
        allowed = _fields_at(kind, problem["loc"][:-1])
        return (
            f"unknown key {location!r}{nearest(str(problem['loc'][-1]), allowed)} Allowed here: {', '.join(allowed)}."
        )
    if category == "literal_error":
        allowed = _choices(problem)
        return f"{location}: expected one of {', '.join(allowed)}, found {found!r}{nearest(str(found), allowed)}"
    if category == "missing":
        return f"{location} is missing; add it."
    reason = str(problem["msg"]).removeprefix("Value error, ")
    return f"{location}: {reason[0].lower()}{reason[1:]}, found {found!r}; change it."


def _choices(problem: Mapping[str, Any]) -> list[str]:
    text = str(problem["ctx"]["expected"])
    return [part.strip().strip("'") for part in text.replace(" or ", ", ").split(",") if part.strip()]


def _fields_at(kind: Any, location: Sequence[int | str]) -> list[str]:
    here: Any = kind
    for part in location:
        if is_dataclass(here):
            here = get_type_hints(cast(type, here)).get(str(part), Any)
        elif get_origin(here) in (dict, Mapping):
            here = get_args(here)[1]
        if get_origin(here) in (Union, types.UnionType):
            here = next((argument for argument in get_args(here) if is_dataclass(argument)), here)
    return [field.name for field in fields(here)] if is_dataclass(here) else []


def literal_choices(hint: Any) -> tuple[Any, ...]:
    """The allowed values of a Literal, else nothing."""
    return get_args(hint) if get_origin(hint) is Literal else ()
