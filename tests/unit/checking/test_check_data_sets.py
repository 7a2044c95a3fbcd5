"""The check counts classes of graphs as the job does: those of an institution's own data set."""

from types import SimpleNamespace

import pytest

from brainfed.checking.people import Checked, Person
from brainfed.checking.split import check_splits
from brainfed.cohort.settings.splits import SplitSettings


@pytest.mark.parametrize(("target", "count"), [("class", 0), ("diagnosis", 1)])
def test_a_data_set_without_a_class_is_found_fine(target, count):
    labels = {"AIDS": [0, 1] * 10, "IMDB-MULTI": [0, 1, 2] * 10}
    people = tuple(
        Person(f"{site}-{number:02d}", site, label, f"{site}-{number:02d}", 0)
        for site, own in labels.items()
        for number, label in enumerate(own)
    )
    split = SplitSettings(institutions="sites", folds=5)
    asked = SimpleNamespace(regime=SimpleNamespace(split="sites"), split=split, default=True, group="mix")
    checked = Checked((), people, tuple(labels), 0)
    assert len(check_splits(checked, [asked], 7, "cohort mix", ("a", "b", "c"), target)) == count
