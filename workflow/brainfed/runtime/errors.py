"""The one exception for mistakes that a user can mend."""


class UserError(Exception):
    """One sentence: what, where (subject, file, row), expected against found, what to do.

    A job that ends in it prints the sentence alone; any other exception is ours and leaves its
    full traceback in the rule's log.
    """
