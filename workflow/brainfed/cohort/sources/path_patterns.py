"""Path patterns of a config, and remedies for absent files."""

import difflib
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.runtime.errors import UserError

COMPARED = 2000
"""Names of a folder among which a similar one is looked for."""


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


def spelling(name: str) -> str:
    """A name without the case of its letters and the zeros before its numbers."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", name.casefold())


def none_but(path: str) -> str:
    """What is found where no file lies at a path: none, or one beside it whose name differs in spelling alone."""
    own = Path(path)
    try:
        names = sorted(one.name for one in own.parent.iterdir())
    except OSError:
        return "none"
    alike = [name for name in names if name != own.name and spelling(name) == spelling(own.name)]
    return f"none but {alike[0]}" if alike else "none"


def lying_near(path: str) -> str:
    """What of an absent path is not there, and what of a similar name is, in brackets; empty for a pattern."""
    if "*" in path:
        return ""
    missing = Path(path)
    while missing.name and not missing.parent.exists():
        missing = missing.parent
    try:
        names = sorted(one.name for one in missing.parent.iterdir())[:COMPARED]
    except OSError:
        return ""
    own = missing.stem.casefold()
    near = next((name for name in names if own and own in name.casefold()), None)
    similar = [near] if near else difflib.get_close_matches(missing.name, names, n=1)
    return f" ({missing} is not there{f', {missing.parent / similar[0]} is' if similar else ''})"
