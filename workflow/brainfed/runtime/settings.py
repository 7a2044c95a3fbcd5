"""Fields of the settings dataclasses: a default, what it means, what is allowed.

Each room of the package keeps its settings as frozen standard dataclasses, so that jobs need no
pydantic. `brainfed.configuration` turns them into the typed config, its JSON schema and its manual.
"""

from collections.abc import Callable
from dataclasses import MISSING, field
from typing import Any


def setting(
    default: Any = MISSING,
    description: str = "",
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    factory: Callable[[], Any] | None = None,
) -> Any:
    """A dataclass field with its description and inclusive bounds (no default: required)."""
    metadata = {"description": description, "minimum": minimum, "maximum": maximum}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)
