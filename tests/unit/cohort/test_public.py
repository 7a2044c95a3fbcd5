"""Public subjects: shares of every class and institution, nested ratios, fold by fold, and never a tested subject."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.cohort.settings import PublicSettings, SplitSettings
from brainfed.cohort.splits import draw_public, split
from brainfed.runtime import Streams, UserError
from support.files.split_tables import split_tables


def cohort(cells, folds=2, duplicates=()):
    """Tables split, participants and included of (institution, diagnosis, number) cells, dealt to folds in turn."""
    rows = [(name, code, place) for name, code, size in cells for place in range(size)]
    ids = [f"s{number:03d}" for number in range(len(rows))]
    group = pd.Series(ids, index=ids)
    for first, second in duplicates:
        group[second] = first
    drawn = pd.DataFrame({"subject": ids, "institution": [row[0] for row in rows]})
    drawn["fold"] = [row[2] % folds for row in rows]
    people = pd.DataFrame({"subject": ids, "diagnosis": pd.array([row[1] for row in rows], dtype="Int8")})
    return drawn, people, pd.DataFrame({"subject": ids, "twin_group": group.to_numpy()})


def draw(tables, ratio=0.3, seed=1, repeat=0):
    return draw_public(*tables, PublicSettings(ratio), Streams(seed, repeat))


EVEN = [("a", 0, 20), ("a", 1, 10), ("b", 0, 8), ("b", 1, 16)]


@pytest.mark.parametrize(("ratio", "expected"), [(0.2, (2, 1, 1, 2)), (0.3, (3, 2, 1, 2)), (0.5, (5, 3, 2, 4))])
def test_every_class_of_every_institution_gives_its_share_with_halves_rounded_up(ratio, expected):
    tables = cohort(EVEN)
    found = draw(tables, ratio).merge(tables[0].drop(columns="fold"), on="subject").merge(tables[1], on="subject")
    for _, public in found.groupby("fold"):
        cells = public.groupby(["institution", "diagnosis"]).size()
        assert tuple(cells.get((name, code), 0) for name, code, _ in EVEN) == expected


def test_a_smaller_public_set_is_part_of_a_larger_one():
    tables = cohort(EVEN, folds=3)
    held = [set(draw(tables, ratio).itertuples(index=False, name=None)) for ratio in (0.2, 0.3, 0.4, 0.6)]
    assert all(small < large for small, large in itertools.pairwise(held))


@given(sizes=st.lists(st.integers(6, 15), min_size=4, max_size=4), folds=st.integers(2, 5), seed=st.integers(0, 99))
@hypothesis_settings(max_examples=10, deadline=None)
def test_nobody_is_public_in_the_fold_that_tests_them(sizes, folds, seed):
    tables = cohort([(name, code, size) for (name, code, _), size in zip(EVEN, sizes, strict=True)], folds)
    tested = tables[0].set_index("subject")["fold"]
    found = draw(tables, 0.4, seed)
    assert (tested[found["subject"]].to_numpy() != found["fold"].to_numpy()).all()
    assert set(found["fold"]) == set(range(folds)) and not found.duplicated().any()


def test_folds_and_repeats_draw_anew_and_a_draw_repeats_itself_in_any_row_order():
    tables = cohort(EVEN, folds=3)
    found = draw(tables)
    shuffled = tuple(table.sample(frac=1, random_state=3) for table in tables)
    pd.testing.assert_frame_equal(draw(shuffled), found)
    assert not draw(tables, repeat=1).equals(found)
    third = tables[0].loc[tables[0]["fold"] == 2, "subject"]
    first, second = (set(found.loc[found["fold"] == fold, "subject"]) & set(third) for fold in (0, 1))
    assert first != second
    assert found.equals(found.sort_values(["fold", "subject"], ignore_index=True))


def test_an_institution_draws_its_own_whoever_else_is_there():
    others = draw(cohort([*EVEN, ("c", 0, 30), ("c", 1, 30)]))
    assert draw(cohort(EVEN)).merge(others).equals(draw(cohort(EVEN)))


def test_subjects_without_a_label_are_never_public_and_untested_ones_with_a_label_may_be():
    drawn, people, included = cohort(EVEN)
    drawn.loc[drawn["institution"] == "a", "fold"] = -1
    people.loc[people["subject"] < "s010", "diagnosis"] = pd.NA
    found = draw((drawn, people, included), 0.6)
    assert found["subject"].min() >= "s010"
    assert found.groupby("fold")["subject"].apply(lambda one: (one < "s030").sum()).tolist() == [12, 12]


def test_duplicates_are_on_one_side_and_count_once():
    pairs = [("s000", "s002"), ("s001", "s003"), ("s030", "s032")]
    tables = cohort(EVEN, duplicates=pairs)
    together = 0
    for seed in range(5):
        found = draw(tables, 0.5, seed)
        for fold in (0, 1):
            public = set(found.loc[found["fold"] == fold, "subject"])
            assert all((one in public) == (other in public) for one, other in pairs)
            of_class = [name for name in public if name < "s020"]
            people = {"s000" if name == "s002" else "s001" if name == "s003" else name for name in of_class}
            assert len(people) == 5  # 10 train, of whom a pair of duplicates is one person: half of 9, rounded up
            together += len(of_class) - len(people)
    assert together > 0


def test_a_class_that_the_ratio_empties_is_named():
    sparse = cohort([("a", 0, 20), ("a", 1, 4), ("b", 0, 20), ("b", 1, 4)])
    words = (
        r"public\.ratio: expected public patients in fold 0, found none: 0\.2 of the 2 or fewer that train in each "
        r"institution rounds to 0; raise"
    )
    with pytest.raises(UserError, match=words):
        draw(sparse, 0.2)
    assert set(draw(sparse, 0.3)["fold"]) == {0, 1}


def test_an_institution_may_give_nobody_and_must_keep_somebody():
    few = cohort([("a", 0, 20), ("a", 1, 20), ("b", 0, 2), ("b", 1, 2)])
    found = draw(few, 0.4)
    assert not set(found["subject"]) & set(few[0].loc[few[0]["institution"] == "b", "subject"])
    with pytest.raises(
        UserError, match=r"private training subjects of institution b in fold 0, found none: 0\.6 .* 2;"
    ):
        draw(few, 0.6)


def test_a_subject_that_another_table_lacks_is_named():
    drawn, people, included = cohort(EVEN)
    with pytest.raises(UserError, match="the diagnosis of every subject of the split, found none of 's003'"):
        draw((drawn, people.drop(index=3), included))
    with pytest.raises(UserError, match="the twin_group of every subject of the split, found none of 's005'"):
        draw((drawn, people, included.drop(index=5)))


def test_a_site_that_is_left_out_gives_nobody_in_its_fold():
    site = np.random.default_rng(0).permutation(list("ABC") * 30)
    included, people = split_tables([0, 1] * 45, site)
    drawn = split(included, people, SplitSettings(validation="leave_one_site_out"), Streams(1))
    found = draw((drawn, people, included)).merge(people, on="subject")
    assert {(fold, site) for fold, site in zip(found["fold"], found["site"], strict=True)} == {
        (fold, site) for fold in range(3) for site in "ABC" if "ABC"[fold] != site
    }
