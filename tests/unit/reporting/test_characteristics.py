"""Table 1 against numbers that were computed by hand."""

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort import class_words
from brainfed.reporting.tables import characteristics

WORDS = class_words("diagnosis")


def people(**columns):
    given = {
        "site": ["a", "a", "b", "b"], "age": [10.0, 12.0, 20.0, np.nan], "sex": ["female", "male", "female", None],
        "diagnosis": [1, 1, 0, 0], "mean_fd": [0.1, 0.3, 0.2, 0.2], "kept_seconds": [np.nan] * 4, "tsnr": [np.nan] * 4,
        "silent_regions": [0.0, 2.0, 0.0, 0.0],
    }  # fmt: skip
    return pd.DataFrame(given | columns)


def rows(kept, words=WORDS):
    return {row.title: row for row in characteristics(kept, words)}


def test_the_first_rows_count_subjects_and_sites_of_all_and_of_each_class():
    found = rows(people())
    assert [text for text, _ in found["subjects"].cells] == ["4", "2", "2"]
    assert [text for text, _ in found["sites"].cells] == ["2", "1", "1"]


def test_means_have_deviations_and_count_what_is_not_known():
    age = rows(people())["age (years)"]
    assert age.cells == (("14.0 (5.3)", 1), ("11.0 (1.4)", 0), ("20.0 (\u2013)", 1))
    assert np.isnan(age.difference) and age.shown == "\u2013"


def test_a_difference_of_means_is_in_pooled_standard_deviations():
    found = rows(people(age=[10.0, 12.0, 20.0, 24.0]))["age (years)"]
    assert found.difference == pytest.approx(11 / np.sqrt((2 + 8) / 2)) and found.notable


def test_a_difference_of_shares_uses_the_variance_of_a_share():
    found = rows(people(sex=["female", "male", "female", "female"]))["female"]
    assert found.cells[0] == ("3 (75\u00a0%)", 0)
    assert found.difference == pytest.approx(0.5 / np.sqrt(0.25 / 2))


def test_equal_groups_do_not_differ_and_groups_without_any_spread_are_infinitely_apart():
    motion = rows(people())["mean framewise displacement (mm)"]
    assert motion.difference == 0 and motion.shown == "0.00" and not motion.notable
    found = rows(people(sex=["female", "female", "male", "male"]))["female"]
    assert found.shown == "\u221e" and found.notable


def test_what_is_known_of_nobody_and_the_target_have_no_row():
    assert "temporal signal-to-noise ratio" not in rows(people())
    assert "female" not in rows(people(), class_words("sex"))


def test_of_three_classes_the_largest_difference_counts():
    words = class_words("diagnosis", ("CN", "MCI", "AD"))
    kept = people(diagnosis=[0, 0, 1, 1], age=[10.0, 12.0, 20.0, 24.0])
    third = people(diagnosis=[2, 2, 2, 2], age=[30.0, 32.0, 30.0, 32.0])
    found = rows(pd.concat([kept, third], ignore_index=True), words)["age (years)"]
    assert len(found.cells) == 4 and found.difference == pytest.approx(20 / np.sqrt((2 + 4 / 3) / 2))
