"""Who is wrong where sites differ: the others of a majority, or nobody knows."""

import pytest

from brainfed.sites import DifferingSitesError, SiteError
from brainfed.sites._packet import usual


@pytest.mark.parametrize(
    ("found", "lead", "error"),
    [
        ({0: "a", 1: "a", 2: "a"}, 0, SiteError),
        ({0: "b", 1: "a", 2: "a"}, 1, SiteError),
        ({2: {"n": (3,)}, 0: {"n": (3,)}, 1: {}}, 0, SiteError),
        ({0: "a", 1: "b"}, 0, DifferingSitesError),
        ({0: "a", 1: "b", 2: "b", 3: "a"}, 0, DifferingSitesError),
        ({0: "a", 1: "b", 2: "c"}, 0, DifferingSitesError),
        ({4: "a"}, 4, SiteError),
    ],
)
def test_more_than_half_of_the_sites_decide(found, lead, error):
    assert usual(found, len(found)) == (lead, error)


def test_sites_that_are_away_count_for_nobody():
    here = {0: "right", 3: "wrong", 4: "wrong"}
    assert usual(here, 5) == (3, DifferingSitesError)
    assert usual({**here, 1: "wrong"}, 5) == (1, SiteError)
