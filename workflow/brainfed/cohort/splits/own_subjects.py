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
    if not found:
        raise UserError(f"site {site!r}: expected its subjects, found none; correct `phenotype` or its columns.")
    if others := [name for name in found if name != site]:
        named = ", ".join(map(repr, others[:3])) + (" and others" if others[3:] else "")
        raise UserError(
            f"site {site!r}: expected subjects of this site alone, found those of {named} in the table; set "
            "`phenotype` to this site's own table, or remove their rows. Another spelling of "
            f"{site!r} is renamed by `codes.site`."
        )
