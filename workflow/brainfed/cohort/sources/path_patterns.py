"""Path patterns of a config, and remedies for absent files."""

import unicodedata
from collections.abc import Callable
from pathlib import Path

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.runtime.errors import UserError


def filled(name: str, key: str, pattern: str, parts: dict[str, str | None]) -> str:
    """Fill {file}, {subject} and {site} into a path pattern.

    Raises:
        UserError: the braces name another slot.
    """
    try:
        return pattern.format_map(parts)
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(
            f"Cohort {name!r}: expected {{file}}, {{subject}} or {{site}} in the `{key}` pattern, found {pattern!r} "
            f"({error}); fix the braces."
        ) from error


def filled_on_disk(
    name: str, key: str, pattern: str, parts: dict[str, str | None], exists: Callable[[str], bool]
) -> str:
    """As `filled`, with the ids in the decomposed form of Unicode (NFD) where only such a file `exists`.

    Raises:
        UserError: the braces name another slot.
    """
    path = filled(name, key, pattern, parts)
    split = {slot: part and unicodedata.normalize("NFD", part) for slot, part in parts.items()}
    if split == parts or exists(path):
        return path
    decomposed = filled(name, key, pattern, split)
    return decomposed if exists(decomposed) else path


def remedy_for(settings: CohortSettings, key: str, path: str | None = None) -> str:
    """Remedy for an absent file of a setting; where nothing is at its relative `path`, with the folder looked in."""
    fix = f"fix `{key}`"
    if path is not None and not Path(path).is_absolute():
        fix += f", or go to the folder where {path} starts, this is {Path.cwd()}"
    return f"run `{settings.fetch}` or {fix}" if settings.fetch else fix
