"""The two tiers of tests: `--tier first` leaves out what carries a mark `full`, `--tier rest` runs that alone."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

SELECT = runpy.run_path(str(Path(__file__).parents[1] / "conftest.py"))["pytest_collection_modifyitems"]


class Item:
    """A collected test with marks."""

    def __init__(self, *marks):
        self.nodeid, self.marks = "test_it", [mark.mark for mark in marks]

    def iter_markers(self, name):
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)


def chosen(tier, *items):
    """Numbers of the tests that a tier runs, and how many it leaves out."""
    left = []
    hook = SimpleNamespace(pytest_deselected=lambda items: left.extend(items))
    held = list(items)
    SELECT(SimpleNamespace(getoption=lambda _: tier, hook=hook), held)
    return [items.index(item) for item in held], len(left)


def test_each_test_is_in_one_of_two_tiers():
    items = Item(), Item(pytest.mark.full("It takes a minute.")), Item(pytest.mark.workflow)
    assert (chosen("first", *items), chosen("rest", *items)) == (([0, 2], 1), ([1], 2))
    assert chosen("all", *items) == ([0, 1, 2], 0)


@pytest.mark.parametrize("mark", [pytest.mark.full, pytest.mark.full(), pytest.mark.full("slow"), pytest.mark.full(1)])
@pytest.mark.parametrize("tier", ["first", "rest", "all"])
def test_a_mark_without_a_sentence_stops_the_collection(mark, tier):
    with pytest.raises(pytest.UsageError, match=r"test_it: expected a mark full\(sentence that says why\)"):
        chosen(tier, Item(mark))
