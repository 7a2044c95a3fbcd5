"""A cohort whose images are a small derivative, and what its listing says."""

from dataclasses import replace

import pytest

from brainfed.cohort.settings import BidsSettings, CohortSettings
from brainfed.cohort.sources import list_cohort
from brainfed.runtime import UserError
from support.files.bids_dataset import Derivative, write_atlas


def cohort(derivative, bids=None, **changes):
    atlas = write_atlas(derivative.folder.parent / "atlas")
    chosen = BidsSettings(**({"derivatives": str(derivative.folder), "space": "T1w"} | (bids or {})))
    return replace(CohortSettings(source="bids", bids=chosen, **atlas), **changes)


def two_subjects(folder):
    """Two subjects with two short runs each, in two spaces; the second has two sessions."""
    tree = Derivative(folder)
    for space in ("T1w", "MNI152NLin2009cAsym"):
        for run in ("01", "02"):
            tree.write_run("01", run=run, space=space, volumes=2)
        for session in ("a", "b"):
            tree.write_run("02", ses=session, run="1", space=space, volumes=2)
    tree.write_participants("sub-01", "sub-02")
    return tree


def names(listing):
    return {listed.subject: [run.name for run in listed.runs] for listed in listing.subjects}


def refused(settings):
    with pytest.raises(UserError) as caught:
        list_cohort("c", settings)
    return str(caught.value)
