"""Folds that are stratified by site and label are even in every site of every institution, also in small ones."""

from collections import defaultdict
from itertools import product
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.cohort.settings import SplitSettings
from brainfed.cohort.splits import split
from brainfed.cohort.splits._folds import even_folds, halves
from brainfed.runtime import Streams, UserError
from support.files.split_tables import split_tables

BY_SITE = MappingProxyType({"stratify": "site_label"})
GROUPS = MappingProxyType({"one": ("S0", "S1"), "two": ("S2", "S3", "S4", "S5", "S6", "S7")})
tables = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=120)


def spread(fold, folds, *keys):
    """Largest difference between two folds in the number of people of one group."""
    counts = defaultdict(lambda: [0] * folds)
    for number, *group in zip(np.asarray(fold).tolist(), *keys, strict=True):
        counts[tuple(group)][number] += 1
    return max((max(found) - min(found) for found in counts.values()), default=0)


@given(table=tables, folds=st.integers(2, 7), seed=st.integers(0, 100))
def test_folds_are_even_in_all_rows_columns_and_cells(table, folds, seed):
    rows, columns = np.array(table, dtype=np.int64).reshape(-1, 2).T
    fold = even_folds(rows, columns, folds, np.random.default_rng(seed))
    assert set(fold) <= set(range(folds))
    for keys in ([np.zeros_like(rows)], [rows], [columns], [rows, columns]):
        assert spread(fold, folds, *keys) <= 1


@given(table=tables)
def test_halves_are_even_in_all_rows_columns_and_cells(table):
    rows, columns = np.array(table, dtype=np.int64).reshape(-1, 2).T
    half = halves(rows, columns)
    for keys in ([np.zeros_like(rows)], [rows], [columns], [rows, columns]):
        assert spread(half.astype(int), 2, *keys) <= 1


def test_no_table_is_too_hard():
    """Every 2 x 2 table of up to four people a cell, in three folds: 625 tables."""
    for counts in product(range(5), repeat=4):
        cells = np.repeat(np.arange(4), counts)
        fold = even_folds(cells // 2, cells % 2, 3, np.random.default_rng(0))
        assert max(spread(fold, 3, cells // 2), spread(fold, 3, cells % 2), spread(fold, 3, cells)) <= 1


def test_every_person_is_equally_often_in_every_fold():
    rows, columns = np.array([0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 0, 1, 1, 1])
    drawn = np.array([even_folds(rows, columns, 3, np.random.default_rng(seed)) for seed in range(3000)])
    shares = np.array([(drawn == fold).mean(axis=0) for fold in range(3)])
    # Five standard errors of a share of one third of 3000 draws are .043.
    assert np.abs(shares - 1 / 3).max() < 0.043


def cohort(subjects, seed=0, duplicates=(), unlabelled=0):
    """Subjects at eight sites of different sizes and prevalences, in no order of either; `duplicates` are positions."""
    random = np.random.default_rng(seed)
    site = random.choice(8, subjects, p=np.arange(1, 9) / 36)
    site[:8] = np.arange(8)  # the smallest site is named in GROUPS
    diagnosis = (random.random(subjects) < 0.3 + 0.05 * site).astype(float)
    diagnosis[subjects - unlabelled :] = np.nan
    return split_tables(
        [None if np.isnan(code) else int(code) for code in diagnosis], [f"S{code}" for code in site], duplicates
    )


def joined(table, included, people):
    """The split of the tested, one row a person: of duplicates the first."""
    found = table.merge(people, on="subject").merge(included[["subject", "twin_group"]], on="subject")
    return found[found["fold"] >= 0].drop_duplicates("twin_group")


@given(data=st.data(), subjects=st.integers(150, 300), folds=st.integers(2, 5), seed=st.integers(0, 1000))
@hypothesis_settings(max_examples=10)
def test_persons_of_each_diagnosis_are_even_in_institutions_in_sites_and_in_both(data, subjects, folds, seed):
    positions = data.draw(st.permutations(range(subjects)))
    duplicates = [positions[:2], positions[2:4], positions[4:7]]
    included, people = cohort(subjects, seed, duplicates, unlabelled=8)
    for own in ({"count": 3}, {"institutions": "site_groups", "groups": dict(GROUPS)}, {"count": 2, "share": 0.3}):
        settings = SplitSettings(**own, **BY_SITE, folds=folds)
        try:
            table = split(included, people, settings, Streams(seed))
        except UserError as error:
            assert "different" in str(error)
            continue
        tested = joined(table, included, people)
        for keys in (["diagnosis"], ["institution"], ["site"], ["institution", "site"]):
            groups = [tested[key] for key in dict.fromkeys([*keys, "diagnosis"])]
            assert spread(tested["fold"], folds, *groups) <= 1
        places = table.set_index("subject")
        for members in duplicates:
            found = places.reindex([f"s{member:03d}" for member in members]).dropna()
            assert found["institution"].nunique() <= 1
            assert found.loc[found["fold"] >= 0, "fold"].nunique() <= 1


def test_sites_of_three_subjects_in_five_folds_are_spread_over_three():
    # Twenty sites of six, three patients and three controls each.
    included, people = split_tables([n % 2 for n in range(120)], [f"S{n // 6:02d}" for n in range(120)])
    table = split(included, people, SplitSettings(count=2, **BY_SITE), Streams(3)).merge(people, on="subject")
    cells = table.groupby(["site", "diagnosis"])["fold"].value_counts()
    assert set(cells) == {1}
    assert table["fold"].value_counts().tolist() == [24] * 5
    assert set(table.groupby(["diagnosis", "fold"]).size()) == {12}


@given(seed=st.integers(0, 1000))
@hypothesis_settings(max_examples=5)
def test_neither_the_order_of_rows_nor_unlabelled_subjects_move_anybody(seed):
    included, people = cohort(120, duplicates=[(3, 40), (11, 12)], unlabelled=12)
    settings = SplitSettings(count=2, folds=3, **BY_SITE)
    expected = split(included, people, settings, Streams(1))
    shuffled = split(
        included.sample(frac=1, random_state=seed), people.sample(frac=1, random_state=seed + 1), settings, Streams(1)
    )
    pd.testing.assert_frame_equal(shuffled, expected)
    assert (expected["fold"] == -1).sum() == 12
    alone = split(included[:-12], people[:-12], settings, Streams(1))
    pd.testing.assert_frame_equal(expected[expected["fold"] >= 0].reset_index(drop=True), alone)


def test_the_same_repeat_is_drawn_again_and_another_one_anew():
    included, people = cohort(150)
    settings = SplitSettings(count=2, folds=4, **BY_SITE)
    one, again, other = (split(included, people, settings, Streams(1, repeat)) for repeat in (0, 0, 1))
    pd.testing.assert_frame_equal(one, again)
    assert (one["fold"] != other["fold"]).any()


def test_institutions_are_those_of_folds_by_label():
    included, people = cohort(150)
    by_label, by_site = (
        split(included, people, SplitSettings(count=3, folds=4, stratify=name), Streams(1))
        for name in ("label", "site_label")
    )
    assert by_label["institution"].equals(by_site["institution"])
    assert not by_label["fold"].equals(by_site["fold"])


@pytest.mark.parametrize("own", [{"institutions": "sites"}, {"validation": "leave_one_site_out"}], ids=str)
def test_where_every_institution_is_a_site_the_folds_are_those_by_label(own):
    included, people = cohort(300, seed=1)
    by_label, by_site = (
        split(included, people, SplitSettings(folds=2, stratify=name, **own), Streams(1))
        for name in ("label", "site_label")
    )
    pd.testing.assert_frame_equal(by_label, by_site)


def test_a_labelled_subject_without_a_site_is_named():
    included, people = cohort(120, unlabelled=5)
    people.loc[[7, 118], "site"] = None
    words = "`stratify: site_label` needs the site of every subject, s007 .and 0 more. have none"
    with pytest.raises(UserError, match=words):
        split(included, people, SplitSettings(count=2, folds=3, **BY_SITE), Streams(1))
    people.loc[7, "site"] = "S0"
    split(included, people, SplitSettings(count=2, folds=3, **BY_SITE), Streams(1))
