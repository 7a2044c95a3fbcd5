"""Sites left out in turn where each has its own subjects alone: a fold is the place of the site among all."""

import pandas as pd
import pytest

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.cohort.splits.institutions import split
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams

SETTINGS = SplitSettings(validation="leave_one_site_out")
SITES = ("berlin", "oslo", "york")


def drawn(sites, study=()):
    names = [f"sub-{number}" for number in range(4 * len(sites))]
    participants = pd.DataFrame({"subject": names, "site": sites * 4, "diagnosis": [0, 1] * (2 * len(sites))})
    included = pd.DataFrame({"subject": names, "included": True, "twin_group": None, "reason": ""})
    return split(included, participants, SETTINGS, Streams(0), sites=study)


@pytest.mark.parametrize("site", SITES)
def test_a_site_alone_has_the_fold_that_it_has_among_all(site):
    together = drawn(list(SITES))
    alone = drawn([site], SITES)
    assert set(alone["fold"]) == set(together.loc[together["institution"] == site, "fold"]) == {SITES.index(site)}
    assert set(alone["institution"]) == {site}


def test_a_site_of_another_name_is_refused():
    with pytest.raises(UserError, match=r"subjects of the study's sites \(berlin, oslo, york\), found some of Oslo"):
        drawn(["Oslo"], SITES)


def test_one_site_without_a_study_is_refused():
    with pytest.raises(UserError, match="at least 2 sites"):
        drawn(["oslo"])
