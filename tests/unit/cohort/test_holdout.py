"""One test set in each institution, and institutions of consecutive subjects, as Xie et al. (2021) divide data."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.cohort.settings import SplitSettings
from brainfed.cohort.splits import split
from brainfed.cohort.splits._folds import spread_evenly
from brainfed.evaluation import ratio_of_splits
from brainfed.runtime import Streams, UserError, write_table
from support.files.split_tables import split_tables

STREAMS = Streams(seed=7)
HOLDOUT = SplitSettings(count=1, validation="holdout")


def numbers(table, participants):
    """Number of tested, training and held-back subjects."""
    tested = int((table["fold"] == 0).sum())
    return tested, int((table["fold"] == -1).sum()), len(participants) - len(table)


@pytest.mark.parametrize(
    ("people", "expected"), [(100, (10, 80, 10)), (50, (5, 40, 5)), (37, (4, 29, 4)), (4, (1, 3, 0)), (2, (1, 1, 0))]
)
def test_a_tenth_is_tested_a_tenth_held_back_and_the_rest_trains(people, expected):
    tables = split_tables([number % 2 for number in range(people)])
    assert numbers(split(*tables, HOLDOUT, STREAMS), tables[1]) == expected


@given(
    sizes=st.lists(st.integers(1, 40), min_size=2, max_size=4),
    tested=st.sampled_from([0.05, 0.1, 0.25, 0.4]),
    held_back=st.sampled_from([0.0, 0.1, 0.25, 0.5]),
    seed=st.integers(0, 1000),
)
@hypothesis_settings(max_examples=25)
def test_every_class_has_its_share_of_all_parts_rounded_up_or_down(sizes, tested, held_back, seed):
    diagnosis = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    tables = split_tables(diagnosis)
    settings = SplitSettings(count=1, validation="holdout", tested=tested, held_back=held_back)
    table = split(*tables, settings, Streams(seed))
    assert set(table["fold"]) == {0, -1}
    total, label = len(diagnosis), tables[1].set_index("subject")["diagnosis"]
    of_test = label[table.loc[table["fold"] == 0, "subject"]].value_counts()
    left = label[sorted(set(label.index) - set(table["subject"]))].value_counts()
    for code, size in enumerate(sizes):
        asked = Fraction(size * int(of_test.sum()), total)
        assert abs(of_test.get(code, 0) - asked) < 1
        rest = size - int(of_test.get(code, 0))
        assert abs(left.get(code, 0) - Fraction(rest * int(left.sum()), total - int(of_test.sum()))) < 1


@given(count=st.integers(1, 60), share=st.floats(0, 1), seed=st.integers(0, 100))
def test_a_systematic_sample_has_its_size_and_is_even_in_every_run(count, share, seed):
    wanted = int(share * count)
    chosen = spread_evenly(count, wanted, np.random.default_rng(seed))
    assert chosen.sum() == wanted and len(chosen) == count
    held = np.concatenate([[0], np.cumsum(chosen)])
    for start in range(count):
        for stop in range(start, count + 1):
            assert abs((held[stop] - held[start]) - Fraction((stop - start) * wanted, count)) < 1


@pytest.mark.full("A claim about many draws takes seconds.")
def test_nobody_is_more_likely_to_be_tested_than_others_also_where_classes_are_uneven():
    tables = split_tables([0] * 7 + [1] * 3)
    tested = np.zeros(10)
    for seed in range(150):
        table = split(*tables, HOLDOUT, Streams(seed))
        tested += (tables[1]["subject"].isin(table.loc[table["fold"] == 0, "subject"])).to_numpy()
    assert np.abs(tested / 150 - 0.1).max() < 5 * np.sqrt(0.09 / 150)


@given(data=st.data(), seed=st.integers(0, 1000))
@hypothesis_settings(max_examples=12)
def test_duplicates_share_an_institution_and_a_part(data, seed):
    positions = data.draw(st.permutations(range(80)))
    duplicates = [positions[:2], positions[2:4], positions[4:7]]
    tables = split_tables([number % 2 for number in range(80)], duplicates=duplicates)
    for kind in ("random", "consecutive"):
        settings = SplitSettings(institutions=kind, count=3, validation="holdout", tested=0.3, held_back=0.3)
        table = split(*tables, settings, Streams(seed)).set_index("subject")
        for members in duplicates:
            held = table.reindex([f"s{member:03d}" for member in members])
            assert held["fold"].isna().all() or ((held.nunique() == 1).all() and held.notna().all().all())


def test_another_repeat_tests_others_and_the_order_of_rows_does_not_matter():
    included, participants = split_tables([number % 2 for number in range(60)])
    settings = SplitSettings(institutions="consecutive", count=3, block=10, validation="holdout")
    first, again = (split(included, participants, settings, Streams(1, repeat)) for repeat in (0, 1))
    tested = [set(table.loc[table["fold"] == 0, "subject"]) for table in (first, again)]
    assert tested[0] != tested[1]
    shuffled = split(
        included.sample(frac=1, random_state=1), participants.sample(frac=1, random_state=2), settings, Streams(1)
    )
    pd.testing.assert_frame_equal(shuffled, first)


def test_institutions_are_runs_of_subjects_and_the_rest_is_spread_at_random():
    tables = split_tables([number % 2 for number in range(400)])
    table = split(*tables, SplitSettings(institutions="consecutive", count=6), STREAMS)
    names = [f"institution-{number}" for number in range(1, 7)]
    for number, name in enumerate(names):
        assert (table["institution"][50 * number : 50 * number + 50] == name).all()
    rest = table["institution"][300:].value_counts()
    assert set(rest.index) == set(names) and rest.min() >= 5


def test_a_run_holds_at_most_an_equal_part_of_the_cohort():
    tables = split_tables([number % 2 for number in range(62)])
    table = split(*tables, SplitSettings(institutions="consecutive", count=3, folds=2), STREAMS)
    assert (table["institution"][:60] == np.repeat([f"institution-{number}" for number in (1, 2, 3)], 20)).all()


def test_duplicates_follow_the_first_and_move_nobody_else():
    diagnosis = [number % 2 for number in range(60)]
    settings = SplitSettings(institutions="consecutive", count=3, folds=2)
    alone = split(*split_tables(diagnosis), settings, STREAMS)["institution"].tolist()
    together = split(*split_tables(diagnosis, duplicates=[(3, 45, 46)]), settings, STREAMS)["institution"].tolist()
    assert [together[place] for place in (3, 45, 46)] == ["institution-1"] * 3
    assert all(alone[place] == together[place] for place in range(60) if place not in (45, 46))


def test_consecutive_institutions_are_the_same_in_all_repeats_and_differ_between_seeds():
    tables = split_tables([number % 2 for number in range(200)])
    settings = SplitSettings(institutions="consecutive", count=3, block=20)
    repeats = [split(*tables, settings, Streams(1, repeat)) for repeat in (0, 1)]
    assert repeats[0]["institution"].equals(repeats[1]["institution"])
    assert not repeats[0]["fold"].equals(repeats[1]["fold"])
    assert not repeats[0]["institution"].equals(split(*tables, settings, Streams(2))["institution"])


def test_a_class_of_one_subject_is_spread_and_not_refused():
    tables = split_tables([0] * 19 + [1])
    parts = set()
    for seed in range(45):
        table = split(*tables, HOLDOUT, Streams(seed)).set_index("subject")["fold"]
        parts.add(table.get("s019", "held back"))
    assert parts == {0, -1, "held back"}


def test_an_institution_of_one_person_is_refused():
    site = ["A"] * 10 + ["B", "B"]
    tables = split_tables([0, 1] * 6, duplicates=[(10, 11)], site=site)
    words = r"institution B needs at least 2 different labelled subjects for `validation: holdout`.* has 1; merge it"
    with pytest.raises(UserError, match=words):
        split(*tables, SplitSettings(institutions="sites", validation="holdout"), STREAMS)


@pytest.mark.parametrize("kind", ["random", "consecutive"])
def test_a_cohort_that_is_too_small_for_its_institutions_is_refused(kind):
    settings = SplitSettings(institutions=kind, count=4, validation="holdout")
    with pytest.raises(
        UserError, match=r"4 institutions x 2 parts.* need at least 8 different subjects, 7 are.*`count`\."
    ):
        split(*split_tables([0, 1] * 3 + [1]), settings, STREAMS)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"tested": 0.6, "held_back": 0.4}, "tested: expected less than 1 together with held_back, found 0.6 [+] 0.4"),
        ({"tested": 1.0, "held_back": 0.0}, "leaves nobody to train"),
        ({"tested": 0}, "tested: expected more than 0, found 0"),
        ({"validation": "holdout", "share": 0.1}, "random institutions with folds"),
    ],
)
def test_impossible_parts_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SplitSettings(**settings)


@pytest.mark.parametrize(
    ("validation", "folds", "untested"),
    [("folds", 5, False), ("leave_one_site_out", None, False), ("holdout", 1, True)],
)
def test_the_settings_know_the_number_of_folds_and_whether_others_train(validation, folds, untested):
    found = SplitSettings(validation=validation)
    assert (found.test_folds, found.trains_untested) == (folds, untested)


@pytest.mark.parametrize(
    ("institutions", "people", "ratio"), [(30, 6, 1 / 4), (2, 100, 1 / 8)], ids=["rounded", "as the settings"]
)
def test_the_ratio_of_tested_to_trained_is_what_the_split_holds(tmp_path, institutions, people, ratio):
    """Of six subjects one is tested, one held back and four train: 1/4, not 1/8; the unlabelled do not count."""
    labels = [number % 2 for number in range(institutions * people)]
    included, participants = split_tables([*labels, *[None] * 20])
    settings = SplitSettings(count=institutions, validation="holdout")
    paths = [str(tmp_path / f"{repeat}.parquet") for repeat in range(2)]
    for repeat, path in enumerate(paths):
        write_table(path, split(included, participants, settings, Streams(seed=7, repeat=repeat)))
    write_table(tmp_path / "participants.parquet", participants)
    assert ratio_of_splits(paths, str(tmp_path / "participants.parquet")) == pytest.approx(ratio)
