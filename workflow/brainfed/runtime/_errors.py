"""The exception for mistakes that a user can fix, and two ways to handle it."""

from collections.abc import Callable


class UserError(Exception):
    """One sentence: what, where (subject, file, row), expected against found, what to do.

    A job that ends in it prints the sentence alone; any other exception is a bug and leaves its
    full traceback in the rule's log.
    """


Refuse = Callable[[UserError], None]
"""Called with the error of a row that cannot be used; if it returns, the reader goes on with the next row."""


def raise_at_once(error: UserError) -> None:
    """Stop at the first mistake, as every job does; `brainfed check` collects them all."""
    raise error


def pass_over(error: UserError) -> None:
    """Ignore a mistake in a row that is read for its id alone."""
