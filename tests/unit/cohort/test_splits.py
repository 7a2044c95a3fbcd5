"""Institutions and folds partition a cohort, keep duplicates together, are balanced and ignore the row order."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from brainfed.cohort.settings import SplitSettings
from brainfed.cohort.splits import split
from brainfed.cohort.splits._folds import folds_of_groups
from brainfed.runtime import Streams, UserError
from support.files.split_tables import split_tables

STREAMS = Streams(seed=7)

# GAHFL Table I, ABIDE-I.
GAHFL = {
    "client-1": ("UM_1", "UM_2", "UCLA_1", "UCLA_2", "OHSU", "CALTECH"),
    "client-2": ("USM", "TRINITY", "MAX_MUN", "STANFORD", "SDSU", "OLIN"),
    "client-3": ("LEUVEN_1", "LEUVEN_2", "PITT", "YALE", "KKI", "SBL", "CMU"),
    "client-4": ("NYU",),
}


def counts(table, participants):
    """(institution, diagnosis) -> subjects in each fold."""
    merged = table.merge(participants, on="subject")
    folds = range(int(table["fold"].max()) + 1)
    return {
        key: [int((part["fold"] == f).sum()) for f in folds]
        for key, part in merged.groupby(["institution", "diagnosis"])
    }


@given(
    controls=st.integers(40, 90),
    patients=st.integers(40, 90),
    count=st.integers(1, 3),
    folds=st.integers(2, 5),
    seed=st.integers(0, 1000),
)
@hypothesis_settings(max_examples=12)
def test_without_duplicates_institutions_and_folds_are_as_equal_as_can_be(controls, patients, count, folds, seed):
    included, participants = split_tables([0] * controls + [1] * patients)
    table = split(included, participants, SplitSettings(count=count, folds=folds), Streams(seed))

    assert table["subject"].tolist() == included["subject"].tolist()
    assert set(table["institution"]) == {f"institution-{i + 1}" for i in range(count)}
    sizes = table["institution"].value_counts()
    assert sizes.max() - sizes.min() <= 1
    assert set(table["fold"]) == set(range(folds))
    for in_folds in counts(table, participants).values():
        assert max(in_folds) - min(in_folds) <= 1


@given(data=st.data(), seed=st.integers(0, 1000))
@hypothesis_settings(max_examples=12)
def test_duplicates_share_institution_and_fold(data, seed):
    positions = data.draw(st.permutations(range(100)))
    duplicates = [positions[:2], positions[2:4], positions[4:7]]
    included, participants = split_tables(
        [i % 2 for i in range(100)], site=[f"S{i % 3}" for i in range(100)], duplicates=duplicates
    )
    for settings in (SplitSettings(count=2, folds=3), SplitSettings(institutions="sites", folds=3)):
        table = split(included, participants, settings, Streams(seed)).set_index("subject")
        for members in duplicates:
            ids = [f"s{i:03d}" for i in members]
            assert table.loc[ids, "institution"].nunique() == 1
            assert table.loc[ids, "fold"].nunique() == 1


@given(seed=st.integers(0, 1000))
@hypothesis_settings(max_examples=5)
def test_row_order_does_not_matter(seed):
    included, participants = split_tables([i % 2 for i in range(60)], duplicates=[(3, 40), (11, 12)])
    expected = split(included, participants, SplitSettings(count=3, folds=4), STREAMS)
    shuffled = split(
        included.sample(frac=1, random_state=seed),
        participants.sample(frac=1, random_state=seed + 1),
        SplitSettings(count=3, folds=4),
        STREAMS,
    )
    pd.testing.assert_frame_equal(shuffled, expected)


def test_another_repeat_draws_both_anew():
    included, participants = split_tables([i % 2 for i in range(100)])
    first = split(included, participants, SplitSettings(), Streams(1, repeat=0))
    second = split(included, participants, SplitSettings(), Streams(1, repeat=1))
    assert (first["institution"] != second["institution"]).any()
    assert (first["fold"] != second["fold"]).any()


def test_institutions_of_a_share_leave_the_others_out():
    included, participants = split_tables([i % 2 for i in range(200)])
    table = split(included, participants, SplitSettings(count=3, folds=2, share=0.1), STREAMS)
    assert table["institution"].value_counts().to_dict() == {f"institution-{i}": 20 for i in (1, 2, 3)}
    assert set(table["subject"]) < set(included["subject"])


def test_more_institutions_of_a_share_leave_the_first_ones_as_they_are():
    included, participants = split_tables([i % 2 for i in range(200)], duplicates=[(5, 6), (70, 180), (11, 12, 13)])
    two = split(included, participants, SplitSettings(count=2, folds=2, share=0.1), STREAMS)
    ten = split(included, participants, SplitSettings(count=10, folds=2, share=0.1), STREAMS)
    first = ten[ten["institution"].isin(["institution-1", "institution-2"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(first, two)


def test_duplicates_stay_together_in_institutions_of_a_share():
    included, participants = split_tables([i % 2 for i in range(100)], duplicates=[(i, i + 50) for i in range(50)])
    table = split(included, participants, SplitSettings(count=5, folds=2, share=0.2), STREAMS)
    places = table.set_index("subject")
    assert len(places) == 100
    for i in range(50):
        assert places.loc[f"s{i:03d}"].equals(places.loc[f"s{i + 50:03d}"])


def test_a_share_of_a_fraction_of_a_subject_is_rounded_down():
    included, participants = split_tables([i % 2 for i in range(109)])
    table = split(included, participants, SplitSettings(count=10, folds=2, share=0.1), STREAMS)
    assert set(table["institution"].value_counts()) == {10}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"count": 4, "share": 0.3}, "4 institutions of 0.3 are more than the cohort"),
        ({"institutions": "sites", "share": 0.1}, "random institutions"),
        ({"validation": "leave_one_site_out", "share": 0.1}, "random institutions"),
        ({"share": 0}, "share: expected more than 0, found 0"),
    ],
)
def test_an_impossible_share_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        SplitSettings(**settings)


@pytest.mark.parametrize(("share", "held"), [(0.009, 0), (0.02, 2)])
def test_a_share_of_fewer_subjects_than_folds_is_refused(share, held):
    included, participants = split_tables([0, 1] * 50)
    with pytest.raises(UserError, match=f"a share of {share} of 100 subjects is {held} in an institution, 3 folds"):
        split(included, participants, SplitSettings(count=2, folds=3, share=share), STREAMS)


def test_shares_may_add_up_to_the_whole_cohort():
    assert SplitSettings(count=10, share=0.1).share == 0.1


def test_excluded_subjects_are_not_split_and_unlabelled_ones_are_tested_in_no_fold():
    included, participants = split_tables([0, 1] * 10 + [None])
    included.loc[3, "included"] = False
    table = split(included, participants, SplitSettings(count=1, folds=2), STREAMS)
    assert "s003" not in set(table["subject"])
    assert table.set_index("subject")["fold"]["s020"] == -1
    assert (table["fold"] < 0).sum() == 1
    assert len(table) == 20


def test_sites_are_institutions():
    included, participants = split_tables([0, 1] * 20, site=["B"] * 20 + ["A"] * 20)
    table = split(included, participants, SplitSettings(institutions="sites", folds=5), STREAMS)
    assert table["institution"].tolist() == ["B"] * 20 + ["A"] * 20
    assert counts(table, participants) == {(s, d): [2] * 5 for s in "AB" for d in (0, 1)}


def test_leave_one_site_out_tests_each_site_once():
    included, participants = split_tables([0, 1, 1, 1, 0, 1], site=["C", "C", "A", "A", "B", "B"])
    table = split(included, participants, SplitSettings(validation="leave_one_site_out"), STREAMS)
    assert table["institution"].tolist() == ["C", "C", "A", "A", "B", "B"]
    assert table["fold"].tolist() == [2, 2, 0, 0, 1, 1]


def test_a_site_without_included_subjects_is_named_with_the_rule():
    included, participants = split_tables([0, 1, 1, 1, 0, 1], site=["C", "C", "A", "A", "B", "B"])
    dropped = participants["site"] == "B"
    included.loc[dropped, ["included", "reason"]] = [[False, f"mean FD above 0.5 mm (0.{i})"] for i in (7, 8)]
    words = r"to test at site B, found none: all 2 leave \(most often: mean FD above 0.5 mm; .*; loosen that rule"
    with pytest.raises(UserError, match=words):
        split(included, participants, SplitSettings(validation="leave_one_site_out"), STREAMS)


def test_a_site_with_all_subjects_tested_elsewhere_as_duplicates_is_named():
    included, participants = split_tables([0, 1, 1, 0], site=["A", "A", "B", "C"], duplicates=[(1, 2)])
    with pytest.raises(UserError, match=r"at site B, .*most often: duplicate of a subject at another site"):
        split(included, participants, SplitSettings(validation="leave_one_site_out"), STREAMS)


def test_duplicates_at_two_sites_are_left_out_together():
    included, participants = split_tables([0, 1, 1, 0], site=["A", "A", "B", "B"], duplicates=[(1, 2)])
    table = split(included, participants, SplitSettings(validation="leave_one_site_out"), STREAMS)
    assert table["institution"].tolist() == ["A", "A", "A", "B"]
    assert table["fold"].tolist() == [0, 0, 0, 1]


GROUPED = split_tables([0, 1] * 20, site=["NYU"] * 20 + ["UCLA_1"] * 10 + ["UCLA_2"] * 10)


def test_groups_of_sites_are_institutions():
    settings = SplitSettings(institutions="site_groups", groups={"east": ("NYU",), "west": ("UCLA_1", "UCLA_2")})
    table = split(*GROUPED, settings, STREAMS)
    assert table["institution"].value_counts().to_dict() == {"east": 20, "west": 20}


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"east": ("NYU",), "west": ("UCLA_1", "UCLA2")}, "UCLA2.*did you mean UCLA_2"),
        ({"east": ("NYU",), "west": ("UCLA_1", "Ulaanbaatar")}, "Ulaanbaatar.*it has NYU, UCLA_1, UCLA_2"),
        ({"east": ("NYU", "UCLA_1"), "west": ("UCLA_1", "UCLA_2")}, "UCLA_1 stands in the groups east and west"),
        ({"east": ("NYU",), "west": ("UCLA_1",)}, "UCLA_2 is in none"),
        ({}, "NYU, UCLA_1, UCLA_2 are in none"),
    ],
)
def test_groups_that_do_not_fit_the_sites_are_refused(groups, message):
    with pytest.raises(UserError, match=message):
        split(*GROUPED, SplitSettings(institutions="site_groups", groups=groups), STREAMS)


def test_a_site_whose_subjects_all_leave_needs_no_group():
    included, participants = GROUPED
    gone = included["subject"].isin(participants.loc[participants["site"] == "UCLA_2", "subject"])
    settings = SplitSettings(institutions="site_groups", groups={"east": ("NYU",), "west": ("UCLA_1",)})
    table = split(included.assign(included=~gone), participants, settings, STREAMS)
    assert set(table["subject"]) == set(included.loc[~gone, "subject"])
    assert set(table["institution"]) == {"east", "west"}


def test_fewer_subjects_of_a_diagnosis_than_folds_are_refused():
    tables = split_tables([0] * 20 + [1] * 4)
    words = r"institution-1 needs at least 5 different patients for 5 folds, it has 4; .*lower `count`"
    with pytest.raises(UserError, match=words):
        split(*tables, SplitSettings(count=1, folds=5), STREAMS)


def test_duplicates_count_once_towards_the_folds():
    tables = split_tables([0] * 20 + [1] * 5, duplicates=[(20, 21)])
    with pytest.raises(UserError, match="5 different patients for 5 folds, it has 4"):
        split(*tables, SplitSettings(count=1, folds=5), STREAMS)


def test_a_site_with_one_diagnosis_is_refused():
    tables = split_tables([0, 1] * 10 + [0] * 10, site=["A"] * 20 + ["B"] * 10)
    words = r"institution B needs at least 2 different patients for 2 folds, it has 0; .*merge it"
    with pytest.raises(UserError, match=words):
        split(*tables, SplitSettings(institutions="sites", folds=2), STREAMS)


CLASSES = ("class 1", "class 2", "class 3")


def test_a_data_set_may_lack_a_class_that_another_has():
    """Two data sets of graphs, one of two and one of three classes: each is divided with its own."""
    site = ["AIDS"] * 20 + ["IMDB-MULTI"] * 30
    tables = split_tables([*([0, 1] * 10), *([0, 1, 2] * 10)], site=site)
    settings = SplitSettings(institutions="sites", folds=5)
    drawn = split(*tables, settings, STREAMS, "class", CLASSES).merge(tables[1], on="subject")
    held = drawn.groupby(["institution", "diagnosis", "fold"]).size()
    assert set(held["AIDS"]) == {2} and set(held["IMDB-MULTI"]) == {2}
    with pytest.raises(UserError, match="institution AIDS needs at least 5 different c "):
        split(*tables, settings, STREAMS, "diagnosis", ("a", "b", "c"))


def test_a_data_set_with_too_few_graphs_of_its_own_class_is_sent_to_holdout():
    tables = split_tables([0] * 10 + [1] * 4, site=["MUTAG"] * 14)
    words = r"institution MUTAG needs at least 5 different class 2 graphs for 5 folds, it has 4; lower `folds`, or use "
    with pytest.raises(UserError, match=words + "`validation: holdout`, or merge it with another institution"):
        split(*tables, SplitSettings(institutions="sites", folds=5), STREAMS, "class", CLASSES)
    split(*tables, SplitSettings(institutions="sites", validation="holdout"), STREAMS, "class", CLASSES)


def test_fewer_subjects_than_institutions_times_folds_are_refused():
    with pytest.raises(UserError, match="5 institutions x 5 folds need at least 25 different subjects, 24 are"):
        split(*split_tables([0, 1] * 12), SplitSettings(), STREAMS)
    with pytest.raises(UserError, match="splits: 1 institution x 5 folds"):
        split(*split_tables([0, 1] * 2), SplitSettings(count=1), STREAMS)


def test_a_cohort_without_a_subject_to_split_is_refused():
    with pytest.raises(UserError, match="no included subject has a diagnosis"):
        split(*split_tables([None, None]), SplitSettings(), STREAMS)


def test_a_subject_without_a_site_is_refused_where_sites_count():
    tables = split_tables([0, 1] * 4, site=["A"] * 4 + ["B"] * 3 + [None])
    with pytest.raises(UserError, match="s007"):
        split(*tables, SplitSettings(institutions="sites", folds=2), STREAMS)


def test_one_site_cannot_be_left_out():
    with pytest.raises(UserError, match=r"at least 2 sites, found \['A'\]"):
        split(*split_tables([0, 1]), SplitSettings(validation="leave_one_site_out"), STREAMS)


@pytest.mark.data
def test_the_site_groups_of_gahfl_fit_abide():
    phenotype = pd.read_csv(Path(os.environ["BRAINFED_DATA"]) / "abide" / "subjects.csv")
    included = pd.DataFrame({"subject": phenotype["key"], "included": True, "twin_group": phenotype["key"]})
    included["twin_group"] = included["twin_group"].replace("UM_1_0050286", "UM_1_0050279")
    participants = pd.DataFrame(
        {"subject": phenotype["key"], "site": phenotype["SITE_ID"], "diagnosis": phenotype["label_asd"]}
    )
    settings = SplitSettings(institutions="site_groups", groups=GAHFL)
    table = split(included, participants, settings, STREAMS)

    sizes = table["institution"].value_counts().to_dict()
    assert sizes == {"client-1": 301, "client-2": 279, "client-3": 280, "client-4": 175}
    duplicates = table.set_index("subject").loc[["UM_1_0050279", "UM_1_0050286"]]
    assert duplicates.nunique().tolist() == [1, 1]
    for (institution, _), in_folds in counts(table, participants).items():
        assert np.ptp(in_folds) <= (2 if institution == "client-1" else 1)


@pytest.mark.parametrize(
    ("settings", "drawn"),
    [
        ({}, True),
        ({"institutions": "sites"}, False),
        ({"institutions": "site_groups"}, False),
        ({"validation": "leave_one_site_out"}, False),
        ({"validation": "holdout"}, True),
        ({"institutions": "consecutive"}, False),
    ],
)
def test_institutions_that_are_sites_are_not_drawn(settings, drawn):
    assert SplitSettings(**settings).draws_institutions == drawn


def groups_of_people(random):
    """Classes and groups of a made-up cohort: single people, duplicates, families with several diagnoses."""
    people = int(random.integers(20, 120))
    groups = np.array([f"person-{code}" for code in random.integers(0, random.integers(10, 2 * people), people)])
    return random.integers(0, random.integers(2, 5), people), groups


@pytest.mark.skipif(sklearn.__version__.startswith("1.7."), reason="this version deals other folds for the same seed")
@pytest.mark.filterwarnings("ignore:The least populated class:UserWarning")
def test_folds_of_groups_are_those_of_the_locked_scikit_learn():
    for case in range(int(os.environ.get("BRAINFED_CASES", "12"))):
        random = np.random.default_rng(case)
        classes, groups = groups_of_people(random)
        folds, seed = int(random.integers(2, 11)), int(random.integers(2**32))
        if folds > min(len(set(groups)), np.bincount(classes).max()):
            continue
        theirs = np.empty(len(classes), dtype=int)
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
        for index, (_, tested) in enumerate(splitter.split(classes, classes, groups)):
            theirs[tested] = index
        assert folds_of_groups(classes, groups, folds, seed).tolist() == theirs.tolist()


def test_a_seed_deals_the_same_folds_under_every_version_of_the_libraries():
    classes, groups = groups_of_people(np.random.default_rng(1))
    drawn = folds_of_groups(classes, groups, 5, 4294967295)
    assert "".join(map(str, drawn)) == "4100412023142342402412000230303333034132014143214132011421323431042"
    inner = StratifiedKFold(5, shuffle=True, random_state=4294967295).split(classes, classes % 2)
    assert [tested.tolist()[:3] for _, tested in inner] == [[1, 2, 9], [3, 15, 23], [0, 6, 10], [7, 12, 13], [4, 5, 8]]


LEFT_OUT = SplitSettings(validation="leave_one_site_out")
STUDY = ("berlin", "oslo", "york")


def drawn(sites, study=()):
    names = [f"sub-{number}" for number in range(4 * len(sites))]
    participants = pd.DataFrame({"subject": names, "site": sites * 4, "diagnosis": [0, 1] * (2 * len(sites))})
    included = pd.DataFrame({"subject": names, "included": True, "twin_group": None, "reason": ""})
    return split(included, participants, LEFT_OUT, Streams(0), sites=study)


@pytest.mark.parametrize("site", STUDY)
def test_a_site_alone_has_the_fold_that_it_has_among_all(site):
    together = drawn(list(STUDY))
    alone = drawn([site], STUDY)
    assert set(alone["fold"]) == set(together.loc[together["institution"] == site, "fold"]) == {STUDY.index(site)}
    assert set(alone["institution"]) == {site}


def test_a_site_of_another_name_is_refused():
    with pytest.raises(UserError, match=r"subjects of the study's sites \(berlin, oslo, york\), found some of Oslo"):
        drawn(["Oslo"], STUDY)


def test_one_site_without_a_study_is_refused():
    with pytest.raises(UserError, match="at least 2 sites"):
        drawn(["oslo"])
