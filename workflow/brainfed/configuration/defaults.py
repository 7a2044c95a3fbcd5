"""Default values of settings dataclasses, which one start of Snakemake asks for hundreds of times."""

from collections.abc import Hashable, Mapping
from dataclasses import asdict
from functools import cache
from types import MappingProxyType
from typing import Any, cast


def defaults_of(kind: type[Any]) -> Mapping[str, Any]:
    """All defaults of a settings dataclass as builtins, not to be changed."""
    # To mypy a `type[Any]` is not hashable.
    return _defaults_of(cast(Hashable, kind))


@cache
def _defaults_of(kind: Any) -> Mapping[str, Any]:
    return MappingProxyType(asdict(kind()))
