"""Fields of the settings dataclasses: default, description, bounds.

Each room of the package keeps its settings as frozen standard dataclasses, so that jobs need no
pydantic. `brainfed.configuration` derives the typed config, its JSON schema and its manual from them.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, field, is_dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

Settings = TypeVar("Settings")


def setting(
    default: Any = MISSING,
    description: str = "",
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    factory: Callable[[], Any] | None = None,
) -> Any:
    """A dataclass field with description and inclusive bounds, named as pydantic names them (no default: required)."""
    bounds = {"ge": minimum, "le": maximum}
    metadata = {"description": description} | {name: bound for name, bound in bounds.items() if bound is not None}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def restore(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """A settings dataclass from its `dataclasses.asdict`; absent keys take their defaults."""
    hints = get_type_hints(kind)
    return kind(**{name: _restored(hints[name], value) for name, value in values.items()})


def _restored(hint: Any, value: Any) -> Any:
    for candidate in (hint, *get_args(hint)):
        if is_dataclass(candidate) and isinstance(value, Mapping):
            if candidate is hint or get_origin(hint) is not dict:
                return restore(cast(type, candidate), value)
            return {key: restore(cast(type, candidate), item) for key, item in value.items()}
    return tuple(value) if get_origin(hint) is tuple and isinstance(value, list) else value


def flat_settings(own: Mapping[str, Any], stages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A method's settings and its stages' as one mapping: `graph.k` is the setting k of the graph; tuples are lists."""
    staged = {f"{stage}.{name}": value for stage, settings in stages.items() for name, value in settings.items()}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in {**own, **staged}.items()}


# Entry points by name: rules name them as strings, so that no edit of one reruns the jobs of another.


def resolve(path: str) -> Any:
    """`module:name` -> the object."""
    module, name = path.split(":")
    return getattr(import_module(module), name)


NAMES: Final = {"snakemake": "Snakemake", "flwr": "Flower", "opacus": "Opacus"}


def borrowed(place: str, parameters: Sequence[str] | None, without: str) -> Any:
    """What has a function with these parameters; None if nothing has, after a sentence on stderr.

    Args:
        place: `module:Class.function`, whose class is returned, or `module:function`, whose module is.
        parameters: names of the function's parameters; None: any, as what takes its place passes them on.
        without: what a run lacks then, as the end of a sentence.
    """
    module, _, name = place.partition(":")
    owner_name, _, function_name = name.rpartition(".")
    try:
        owner = import_module(module)
        owner = getattr(owner, owner_name) if owner_name else owner
        there = tuple(inspect.signature(getattr(owner, function_name)).parameters)
    except (ImportError, AttributeError, TypeError, ValueError):
        there = None
    if there is not None and (parameters is None or there == tuple(parameters)):
        return owner
    asked = name if parameters is None else f"{name}({', '.join(parameters)})"
    library = module.partition(".")[0]
    lock = "requirements-sites.lock" if library == "flwr" else "requirements.lock"
    print(
        f"{NAMES.get(library, library)} {version(library)}: expected {asked} in {module}, found "
        f"{'none' if there is None else ', '.join(there)}; {without}. {lock} names a version that has it.",
        file=sys.stderr,
    )
    return None


# Number formats of large matrix products: a setting of a method, because it changes the method's numbers.

Precision = Literal["float32", "tf32", "bfloat16"]

PRECISION_DESCRIPTION = (
    "Number format of the large matrix products; weights and sums stay float32. tf32 (factors rounded to 10 bits of "
    "mantissa) exists on a GPU alone and is float32 elsewhere."
)
