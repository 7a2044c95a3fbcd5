"""The one exception for mistakes that a user can fix, and what is done with it."""

from collections.abc import Callable


class UserError(Exception):
    """One sentence: what, where (subject, file, row), expected against found, what to do.

    A job that ends in it prints the sentence alone; any other exception is ours and leaves its
    full traceback in the rule's log.
    """


Refuse = Callable[[UserError], None]
"""What a reader does with a row that it cannot use; if this returns, the reader goes on with the next row."""


def raise_at_once(error: UserError) -> None:
    """Stop at the first mistake, as every job does; `brainfed check` collects them all."""
    raise error


def pass_over(error: UserError) -> None:
    """Let a mistake be that concerns nobody: a row that is read for its id alone."""
