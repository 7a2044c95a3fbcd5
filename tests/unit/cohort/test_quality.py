"""Exclusions with their reasons, and issues of the included subjects."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.quality import coverage_without_scan, quality_without_scan
from brainfed.cohort.settings import CohortSettings, ExclusionSettings
from brainfed.imaging.series import read_shard
from brainfed.runtime import UserError
from support.files.quality_tables import measure, people_table, quality_table
from support.files.run_of_cohort import decide, parts_of

SETTINGS = CohortSettings(source="timeseries")


SIX = [f"s{i}" for i in range(6)]


def participants(**columns):
    usual = {"site": list("aaabbb"), "sex": ["male", "female"] * 3}
    return people_table(SIX, [0, 1, 0, 1, 0, 1], **usual).assign(**columns)


def quality(**columns):
    return quality_table(SIX, **columns)


COVERAGE = pd.DataFrame({"subject": ["s3", "s3"], "region": ["V1", "M1"], "coverage": [0.0, 1.0]})


def reasons(included):
    return dict(zip(included["subject"], included["reason"], strict=True))


def test_regions_without_signal_are_unknown_of_data_that_are_no_series():
    series = measure(participants(), quality(empty_regions=2), COVERAGE, 0.5)
    assert series["silent_regions"].tolist() == [2.0] * 6
    found = quality_without_scan(SIX, {}, {})
    assert measure(participants(), found, coverage_without_scan(), 0.5)["silent_regions"].isna().all()


def test_a_clean_cohort_is_included_and_raises_no_issue():
    included, issues = decide(participants(), quality(), COVERAGE, SETTINGS)
    assert list(included.columns) == ["subject", "included", "twin_group", "reason"]
    assert included["included"].all()
    assert list(included["twin_group"]) == list(included["subject"])
    assert issues.empty
    assert list(issues.columns) == ["subject", "kind", "detail", "action"]


def test_subjects_with_an_absent_or_broken_series_or_without_a_diagnosis_are_left_out():
    people = participants(
        has_series=[False, True, True, True, True, True],
        absence=["no series", "", "", "", "", ""],
        diagnosis=pd.array([0, None, 0, 1, 0, 1], dtype="Int8"),
    )
    measured = quality(problem=["", "", "the file is truncated", "", "", ""]).iloc[1:]
    included, issues = decide(people, measured, COVERAGE, SETTINGS)
    assert list(included["reason"]) == ["no series", "diagnosis missing", "the file is truncated", "", "", ""]
    assert issues.loc[issues["action"] == "left out", ["subject", "kind"]].to_numpy().tolist() == [
        ["s0", "no series"],
        ["s1", "diagnosis missing"],
        ["s2", "series unusable (damaged, short or not finite)"],
    ]


def test_an_absent_file_is_an_issue_of_its_own_kind():
    people = participants(
        has_series=[False, False, False, True, True, True],
        absence=["no series", "series file absent", "confounds file absent", "", "", ""],
    )
    included, issues = decide(people, quality().iloc[3:], COVERAGE, SETTINGS)
    assert list(included["reason"]) == ["no series", "series file absent", "confounds file absent", "", "", ""]
    assert issues[["subject", "kind", "action"]].to_numpy().tolist() == [
        ["s0", "no series", "left out"],
        ["s1", "series file absent", "left out"],
        ["s2", "confounds file absent", "left out"],
    ]


def test_the_order_of_the_tables_does_not_matter():
    people, measured = participants(age=[1, 2, np.nan, 4, 5, 6]), quality(checksum=list("uvwuyz"))
    expected = decide(people, measured, COVERAGE, SETTINGS)
    shuffled = decide(people.iloc[::-1], measured.sample(frac=1, random_state=0), COVERAGE, SETTINGS)
    for one, other in zip(expected, shuffled, strict=True):
        pd.testing.assert_frame_equal(one, other)


def test_identical_series_are_one_group_of_duplicates():
    people = participants(sex="male", diagnosis=pd.array([0, 1, 0, 1, 1, 0], dtype="Int8"))
    included, issues = decide(people, quality(checksum=list("uvuxyu")), COVERAGE, SETTINGS)
    assert list(included["twin_group"]) == ["s0", "s1", "s0", "s3", "s4", "s0"]
    duplicates = issues[issues["kind"] == "identical series"]
    assert list(duplicates["subject"]) == ["s0", "s2", "s5"]
    assert duplicates["detail"].iloc[0] == "the same data as s2, s5"
    assert set(duplicates["action"]) == {"same fold, same institution"}


def test_copies_that_disagree_in_diagnosis_sex_or_age_are_said_to_contradict_each_other():
    people = participants(
        diagnosis=pd.array([0, 1, 0, 0, 1, None], dtype="Int8"),
        sex=pd.array(["male", "male", "male", "female", "male", None], dtype="string"),
        age=[12.2, 12.0, 12.2, 13.5, 12.2, 11.2],
    )
    _, issues = decide(people, quality(checksum=list("uuvvww")), COVERAGE, replace(SETTINGS, unlabelled="keep"))
    duplicates = issues[issues["kind"] == "identical series"].set_index("subject")["detail"]
    ending = "at least one file or row is wrong"
    assert duplicates["s0"] == f"the same data as s1, with different diagnoses: {ending}"
    assert duplicates["s3"] == f"the same data as s2, with different sexes and ages: {ending}"


def test_nearly_identical_connectivity_is_in_one_group_with_identical_series():
    measures = measure(participants(), quality(), COVERAGE, 0.5).assign(alike=["s0", "s0", "s2", "s3", "s3", "s3"])
    people = participants(diagnosis=pd.array([0, 1, 0, None, 0, 1], dtype="Int8"))
    included, issues = decide(people, quality(checksum=list("uvvxyz")), COVERAGE, SETTINGS, measures)
    assert list(included["twin_group"]) == ["s0", "s0", "s0", "s3", "s4", "s4"]
    near = issues[issues["kind"] == "nearly identical connectivity"]
    assert list(near["subject"]) == ["s0", "s1", "s2", "s4", "s5"]


def test_much_motion_short_scans_and_odd_connectivity_are_listed_and_kept():
    measures = measure(participants(), quality(), COVERAGE, 0.5)
    measures.loc[1, "mean_fd"], measures.loc[2, "kept_seconds"] = 0.31, 180.0
    measures.loc[3, ["typicality", "typicality_z"]] = [0.12, -4.14]
    measures.loc[4, "tsnr"] = 10.0
    settings = replace(SETTINGS, exclude=ExclusionSettings(min_tsnr=5))
    included, issues = decide(participants(), quality(), COVERAGE, settings, measures)
    assert included["included"].all()
    listed = issues[["subject", "kind", "detail"]].to_numpy().tolist()
    assert ["s1", "mean FD above 0.2 mm", "0.31 mm"] in listed
    assert ["s2", "scan shorter than 4 min", "180 s kept"] in listed
    odd = ["s3", "connectivity unlike the others", "r = 0.12 with the mean of the others (robust z = -4.1)"]
    assert odd in listed
    assert (issues["kind"] == "tSNR not known").sum() == 5


def test_an_excluded_subject_is_not_a_duplicate():
    people = participants(diagnosis=pd.array([None, 1, 0, 1, 0, 1], dtype="Int8"))
    included, issues = decide(people, quality(checksum=list("uvuxyz")), COVERAGE, SETTINGS)
    assert list(included["twin_group"]) == list(included["subject"])
    assert "identical series" not in set(issues["kind"])


def test_unreadable_series_are_not_duplicates_of_each_other():
    measured = quality(checksum=["", "", "w", "x", "y", "z"], problem=["bad", "bad", "", "", "", ""])
    included, _ = decide(participants(), measured, COVERAGE, SETTINGS)
    assert list(included["twin_group"]) == list(included["subject"])


def test_subjects_without_age_or_sex_are_kept_and_listed():
    people = participants(
        age=[np.nan, 20, 20, 20, 20, 20], sex=pd.array(["male", None, "male", "male", "male", "male"], dtype="string")
    )
    included, issues = decide(people, quality(), COVERAGE, SETTINGS)
    assert included["included"].all()
    assert list(zip(issues["subject"], issues["kind"], strict=True)) == [("s0", "age missing"), ("s1", "sex missing")]


def test_regions_without_signal_are_listed_with_their_number():
    measured = quality(constant_regions=[0, 118, 0, 0, 0, 0], empty_regions=[0, 0, 0, 1, 0, 0])
    included, issues = decide(participants(), measured, COVERAGE, SETTINGS)
    assert included["included"].all()
    assert issues.drop(columns="action").to_numpy().tolist() == [
        ["s1", "constant regions", "118 regions"],
        ["s3", "empty regions", "1 regions: V1"],
    ]


def test_regions_that_were_barely_seen_are_listed_and_kept():
    regions = [f"R{i}" for i in range(8)]
    seen = pd.DataFrame(
        {
            "subject": ["s0"] * 8 + ["s1"] * 8,
            "region": regions * 2,
            "coverage": [0.0, 0.01, 0.2, 0.3, 0.4, 0.45, 0.49, 0.5, *[0.5] * 7, 0.2],
        }
    )
    included, issues = decide(participants(), quality(), seen, SETTINGS)
    assert included["included"].all()
    assert issues[["subject", "kind", "detail"]].to_numpy().tolist() == [
        ["s0", "low coverage", "6 regions below 50 %: R1, R2, R3, R4, R5 ..."],
        ["s1", "low coverage", "1 regions below 50 %: R7"],
    ]
    _, issues = decide(participants(), quality(), seen, replace(SETTINGS, min_coverage=0.25))
    assert list(issues["detail"]) == ["2 regions below 25 %: R1, R2", "1 regions below 25 %: R7"]


def test_regions_without_signal_can_drop_their_subject():
    measured = quality(constant_regions=[0, 2, 0, 0, 0, 0], empty_regions=[0, 1, 0, 0, 0, 0])
    included, _ = decide(participants(), measured, COVERAGE, replace(SETTINGS, constant_regions="drop_subject"))
    assert reasons(included)["s1"] == "3 regions without signal"
    assert included["included"].sum() == 5


def test_regions_without_signal_can_be_an_error():
    measured = quality(constant_regions=[0, 2, 0, 0, 0, 0])
    with pytest.raises(UserError, match="Subject s1: expected a signal in every region, found 2"):
        decide(participants(), measured, COVERAGE, replace(SETTINGS, constant_regions="error"))


def test_a_site_with_one_class_is_listed():
    people = participants(diagnosis=pd.array([0, 1, 0, 1, 1, 1], dtype="Int8"))
    _, issues = decide(people, quality(), COVERAGE, SETTINGS)
    assert issues.to_numpy().tolist() == [
        ["", "one class", "site b: 3 subjects, all patients", "kept, its AUC is undefined"]
    ]


def test_a_resampled_atlas_is_one_line_and_a_suspicious_image_one_a_subject():
    resampled = [*["from 3 mm to 2 mm"] * 5, ""]
    measured = quality(resampled=resampled, suspicion=["", "axes are turned", "", "", "", ""])
    _, issues = decide(participants(), measured, COVERAGE, SETTINGS)
    assert issues[["subject", "kind", "detail"]].to_numpy().tolist() == [
        ["", "atlas resampled", "atlas resampled from 3 mm to 2 mm: 5 subjects"],
        ["s1", "space of the image", "axes are turned"],
    ]


def test_a_series_without_a_quality_row_is_an_error():
    with pytest.raises(UserError, match="Subject s2: expected a row in the quality tables"):
        decide(participants(), quality().drop(index=2), COVERAGE, SETTINGS)


def test_a_cohort_without_included_subjects_is_refused():
    with pytest.raises(UserError, match=r"expected a usable subject among 6, found none .*diagnosis missing"):
        decide(participants(diagnosis=pd.array([None] * 6, dtype="Int8")), quality(), COVERAGE, SETTINGS)


@pytest.mark.data
def test_the_known_defects_of_abide_are_listed(tmp_path):
    data = Path(os.environ["BRAINFED_DATA"]) / "abide"
    known = ["Caltech_0051469", "Caltech_0051478", "UM_1_0050279", "UM_1_0050286", "UM_1_0050272"]
    with np.load(data / "timeseries.npz") as series:
        for name in known:
            header = "\t".join(f"#{i}" for i in range(1, 201))
            np.savetxt(tmp_path / f"{name}.1D", series[name], fmt="%.6f", delimiter="\t", header=header, comments="")
    out = parts_of(tmp_path)
    settings = replace(SETTINGS, regions=200)
    read_shard({name: tmp_path / f"{name}.1D" for name in known}, settings, out)
    people = people_table(known, [0, 1, 0, 1, 0], site=["Caltech", "Caltech", "UM", "UM", "UM"])
    included, issues = decide(people, pd.read_parquet(out.quality), pd.read_parquet(out.coverage), settings)
    groups = included.set_index("subject")["twin_group"]
    assert groups["UM_1_0050279"] == groups["UM_1_0050286"] == "UM_1_0050279"
    assert groups["UM_1_0050272"] == "UM_1_0050272"
    constant = issues[issues["kind"] == "constant regions"].set_index("subject")["detail"]
    assert constant.to_dict() == {"Caltech_0051469": "80 regions", "Caltech_0051478": "118 regions"}
