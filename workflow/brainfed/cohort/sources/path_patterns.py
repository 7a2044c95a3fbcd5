"""The path patterns of a config, and what to do where they lead nowhere."""

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.runtime.errors import UserError


def filled(name: str, key: str, pattern: str, parts: dict[str, str | None]) -> str:
    """A path pattern with its {file}, {subject} and {site} filled in.

    Raises:
        UserError: its braces name something else.
    """
    try:
        return pattern.format_map(parts)
    except (KeyError, ValueError, IndexError) as error:
        raise UserError(
            f"Cohort {name!r}: expected {{file}}, {{subject}} or {{site}} in the `{key}` pattern, found {pattern!r} "
            f"({error}); mend the braces."
        ) from error


def remedy_for(settings: CohortSettings, key: str) -> str:
    """What to do about an absent file of a setting."""
    return f"run `{settings.fetch}` or mend `{key}`" if settings.fetch else f"mend `{key}`"
