"""A mistake of one site, which the person there can mend; sites that differ; sites that are lost in a step."""

from collections.abc import Collection, Mapping

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


class DifferingSitesError(SiteError):
    """A site differs from another one, and neither contradicts itself: which of them is wrong is not known."""


def usual(found: Mapping[int, object], sites: int) -> tuple[int, type[SiteError]]:
    """What most sites have, and the error of a site that has something else.

    Args:
        found: site -> what it has, of those that are here.
        sites: number of all sites of the study.

    Returns:
        The first site that has what most have; `SiteError` where that is more than half of all sites.
    """
    every = [found[code] for code in sorted(found)]
    lead = max(sorted(found), key=lambda code: every.count(found[code]))
    return lead, SiteError if 2 * every.count(found[lead]) > sites else DifferingSitesError


class LostSitesError(Exception):
    """Sites that had asked for a step were not there while their numbers were added up; the step can be tried again.

    Args:
        codes: of the sites.
    """

    def __init__(self, codes: Collection[int]) -> None:
        super().__init__(f"lost sites {sorted(codes)}")
        self.codes = frozenset(codes)
