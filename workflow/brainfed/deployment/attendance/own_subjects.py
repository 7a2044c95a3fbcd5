"""A site of a study has its own subjects alone."""

from collections.abc import Sequence

from brainfed.runtime.errors import UserError


def require_own(found: Sequence[str], site: str) -> None:
    """Refuse subjects of another site than this one.

    Args:
        found: names of the sites of all subjects.
        site: the name of this one.

    Raises:
        UserError: one of them is another, or there is none.
    """
    if tuple(found) != (site,):
        raise UserError(
            f"site {site!r}: expected subjects of the site of this name alone, found those of "
            f"{', '.join(map(repr, found[:3])) or 'none'}; give the site one name in the table (`codes.site` renames "
            "it) and in `study`."
        )
