"""Sums over processes: what is sent is checked before it leaves."""

import numpy as np
import pytest

from brainfed.federation import Ledger, add_up, columns
from brainfed.federation._link import Together
from brainfed.federation._sharing import UndeclaredCrossing

SUBJECTS = 9
LEDGER = Ledger({"moments": ("width", "columns"), "count": ()}, {"columns": 3})


class Doubled(Together):
    """Two processes that give the same."""

    def __init__(self):
        self.sent = []

    def total(self, parts):
        self.sent.append(dict(parts))
        return {name: 2 * part for name, part in parts.items()}


def test_declared_parts_are_added_up_and_not_counted():
    link = Doubled()
    found = add_up(link, LEDGER, SUBJECTS, {"moments": np.ones((2, 3)), "count": np.array(SUBJECTS)})
    assert found["count"] == 2 * SUBJECTS and found["moments"].tolist() == [[2, 2, 2], [2, 2, 2]]
    assert len(link.sent) == 1 and LEDGER.rows() == ()


@pytest.mark.parametrize(
    ("name", "shape", "sentence"),
    [
        ("labels", (), "labels may not leave an institution: declared are count, moments"),
        ("moments", (2,), r"moments: declared with the axes \('width', 'columns'\), found the shape \(2,\)"),
        ("moments", (2, 4), "moments: axis columns has 3 entries, found 4"),
        ("moments", (SUBJECTS, 3), "moments: axis width of 9 entries is as long as the institution's list"),
    ],
)
def test_a_part_that_may_not_leave_stops_all_of_them(name, shape, sentence):
    link = Doubled()
    with pytest.raises(UndeclaredCrossing, match=sentence):
        add_up(link, LEDGER, SUBJECTS, {"count": np.array(1), name: np.zeros(shape)})
    assert link.sent == []


def test_an_entry_of_a_size_that_nobody_knows_is_refused():
    with pytest.raises(UndeclaredCrossing, match=r"^education: expected one of labels, sex, site, age"):
        columns("sex", "education")
