"""A cohort whose images are a small derivative, and what its listing says."""

from dataclasses import replace

import pytest

from bids_dataset import write_atlas
from brainfed.cohort.bids_settings import BidsSettings
from brainfed.cohort.listing import list_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.runtime.errors import UserError


def cohort(derivative, bids=None, **changes):
    atlas = write_atlas(derivative.folder.parent / "atlas")
    chosen = BidsSettings(**({"derivatives": str(derivative.folder), "space": "T1w"} | (bids or {})))
    return replace(CohortSettings(source="bids", bids=chosen, **atlas), **changes)


def names(listing):
    return {listed.subject: [run.name for run in listed.runs] for listed in listing.subjects}


def refused(settings):
    with pytest.raises(UserError) as caught:
        list_cohort("c", settings)
    return str(caught.value)
