"""A mistake of one site, which the person there can mend."""

from brainfed.runtime.errors import UserError


class SiteError(UserError):
    """One site sends what cannot be used.

    Args:
        code: of the site.
        sentence: for people at the coordinator and at the site.
    """

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
