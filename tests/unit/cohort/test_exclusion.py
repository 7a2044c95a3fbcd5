"""Exclusion rules exclude nobody by default, give the first reason that applies, and precede the split."""

from dataclasses import fields, replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.cohort.quality import QUALITY_MEASURES, RULES, exclusion_kind, reason_kind
from brainfed.cohort.quality._inclusion import exclusion
from brainfed.cohort.settings import CohortSettings, ExclusionSettings, SplitSettings
from brainfed.cohort.sources import Absence
from brainfed.cohort.splits import split
from brainfed.reporting.tables import flow_steps
from brainfed.runtime import Streams
from support.files.quality_tables import measure, people_table, quality_table
from support.files.run_of_cohort import decide

GOOD = dict.fromkeys(QUALITY_MEASURES, 0.0) | {
    "mean_fd": 0.1, "timepoints": 200.0, "kept_seconds": 400.0, "kept_share": 1.0, "coverage": 1.0, "tsnr": 60.0
}  # fmt: skip
LIMITS = {
    "min_volumes": 100, "min_kept_seconds": 240.0, "min_kept_share": 0.5, "mean_fd": 0.5, "min_coverage": 0.9,
    "max_barely_seen_regions": 3, "max_constant_regions": 5, "min_tsnr": 25.0,
}  # fmt: skip
STRICT = ExclusionSettings(**LIMITS)
BROKEN = {
    "min_volumes": (99, "kept volumes below 100 (99)"),
    "min_kept_seconds": (239.5, "kept length below 240 s (240)"),
    "min_kept_share": (0.4, "kept share of volumes below 50 % (40)"),
    "mean_fd": (0.734, "mean FD above 0.5 mm (0.734)"),
    "min_coverage": (0.5, "mean coverage of regions below 90 % (50)"),
    "max_barely_seen_regions": (4, "barely seen regions above 3 (4)"),
    "max_constant_regions": (118, "number of regions without signal above 5 (118)"),
    "min_tsnr": (12, "tSNR below 25 (12)"),
}


def test_by_default_nobody_is_left_out():
    worst = dict.fromkeys(QUALITY_MEASURES, 1e9) | dict.fromkeys(("timepoints", "kept_share", "coverage", "tsnr"), 0.0)
    assert exclusion(worst, ExclusionSettings()) == ""
    assert CohortSettings(source="timeseries").exclude == ExclusionSettings()


def test_every_setting_has_a_rule_in_its_order():
    assert [field.name for field in fields(ExclusionSettings)] == list(RULES)


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_applies_alone_and_gives_its_reason(name):
    value, reason = BROKEN[name]
    measures = GOOD | {RULES[name].measure: value}
    assert exclusion(GOOD, STRICT) == ""
    assert exclusion(measures, STRICT) == reason
    assert exclusion(measures, replace(STRICT, **{name: None})) == ""
    assert reason_kind(reason) == exclusion_kind(reason) == reason.split(" (")[0]


@pytest.mark.parametrize("name", BROKEN)
def test_a_value_at_its_limit_and_an_unknown_one_stay(name):
    assert exclusion(GOOD | {RULES[name].measure: LIMITS[name]}, STRICT) == ""
    assert exclusion(GOOD | {RULES[name].measure: float("nan")}, STRICT) == ""


def test_the_first_rule_that_applies_gives_the_reason():
    measures = dict(GOOD)
    for name in reversed(list(BROKEN)):
        measures[RULES[name].measure] = BROKEN[name][0]
        assert exclusion(measures, STRICT) == BROKEN[name][1]


def test_other_reasons_are_not_exclusions():
    for reason in ("", "no series", "Subject s1: expected 5 (found 3)", "3 regions without signal"):
        assert exclusion_kind(reason) == ""


def cohort(size, seed):
    random = np.random.default_rng(seed)
    subjects = [f"{number:04d}" for number in range(size)]
    people = people_table(
        subjects,
        random.choice([0, 1, None], size, p=[0.45, 0.45, 0.1]),
        site=random.choice(["a", "b"], size),
        mean_fd=np.where(random.random(size) < 0.1, np.nan, random.lognormal(-2, 1, size)),
        has_series=random.random(size) < 0.9,
    )
    people["fd_source"] = np.where(people["mean_fd"].isna(), "", "table")
    people["absence"] = np.where(people["has_series"], "", random.choice(["no series", "series file absent"], size))
    scans = quality_table(
        subjects,
        timepoints=random.integers(60, 300, size),
        constant_regions=random.integers(0, 8, size),
        problem=np.where(random.random(size) < 0.1, "damaged", ""),
    )
    seen = pd.DataFrame({"subject": subjects, "region": "R1", "coverage": random.uniform(0.85, 1, size)})
    return people, scans[people["has_series"]], seen[people["has_series"]]


@settings(max_examples=10, deadline=None)
@given(
    size=st.integers(40, 80),
    seed=st.integers(0, 10_000),
    chosen=st.sets(st.sampled_from(sorted(set(LIMITS) - {"min_tsnr"}))),
)
def test_the_flow_chart_adds_up(size, seed, chosen):
    people, scans, seen = cohort(size, seed)
    limits = ExclusionSettings(**{name: LIMITS[name] for name in chosen})
    included, _ = decide(people, scans, seen, CohortSettings(source="timeseries", exclude=limits))
    listed, steps = flow_steps(people.merge(included, on="subject"))
    assert listed.subjects == size
    for number in (lambda one: one.subjects, lambda one: one.classes.get(1, 0), lambda one: one.classes.get(0, 0)):
        left = number(listed)
        for step in steps:
            left -= sum(number(count) for _, count in step.reasons)
            assert number(step.remaining) == left
    assert (steps[-1].remaining if steps else listed).subjects == included["included"].sum()
    assert all(bool(reason) != kept for reason, kept in included[["reason", "included"]].to_numpy())


STEP_OF = {
    "excluded by diagnosis": "not excluded",
    "no series": "with a series",
    "series file absent": "with a series",
    "confounds file absent": "with a series",
    "brain mask absent": "with a series",
    "sidecar without content": "with a series",
    "no FreeSurfer id": "with FreeSurfer measures",
    "stats folder absent": "with FreeSurfer measures",
    "Subject s1: expected 60 rows": "with a usable series",
    "diagnosis missing": "with a label",
    "unlabelled copy of a labelled subject": "with a label",
    "mean FD above 0.5 mm (0.7)": "of sufficient quality",
}


@pytest.mark.parametrize("reason", STEP_OF)
def test_each_reason_leaves_at_its_step(reason):
    people = pd.DataFrame({"included": [False, True], "reason": [reason, ""], "diagnosis": [1, 0]})
    assert [step.passed for step in flow_steps(people)[1]] == [STEP_OF[reason]]


def test_every_absence_has_a_step_and_the_diagnosis_has_the_first():
    absences = [absence for absence in get_args(Absence) if absence]
    assert set(absences) <= set(STEP_OF)
    people = pd.DataFrame({"included": False, "reason": ["no series", "excluded by diagnosis"], "diagnosis": 0})
    assert [step.remaining.subjects for step in flow_steps(people)[1]] == [1, 0]


def test_the_excluded_are_in_no_split():
    people, scans, seen = cohort(150, seed=1)
    limits = ExclusionSettings(mean_fd=0.2, min_kept_seconds=240)
    included, _ = decide(people, scans, seen, CohortSettings(source="timeseries", exclude=limits))
    drawn = split(included, people, SplitSettings(count=1, folds=2), Streams(1))
    kept = set(included.loc[included["included"], "subject"])
    assert set(drawn["subject"]) == kept
    left_out = included[included["reason"].str.contains("mean FD|kept length")]
    assert len(left_out) > 20
    assert not kept & set(left_out["subject"])


def test_measures_of_a_scan_replace_missing_motion_of_the_table():
    people = pd.DataFrame(
        {"subject": ["007", "008", "009"], "mean_fd": [0.1, np.nan, np.nan], "fd_source": ["table", "", ""]}
    )
    scans = pd.DataFrame(
        {"subject": ["008", "007"], "timepoints": [90, 100], "volumes": [120, 100], "tr": [2.0, np.nan],
         "mean_fd": [0.3, 0.4], "tsnr": [50.0, np.nan], "constant_regions": [1, 0], "empty_regions": [2, 0],
         "problem": ""}
    )  # fmt: skip
    seen = pd.DataFrame({"subject": ["008"] * 4, "region": list("abcd"), "coverage": [0.0, 0.4, 1.0, 1.0]})
    found = measure(people, scans, seen, 0.5).set_index("subject")
    assert found["fd_source"].to_dict() == {"007": "table", "008": "scan", "009": ""}
    assert found.loc["007", "mean_fd"] == 0.1
    row = found.loc["008"]
    assert (row["mean_fd"], row["kept_share"], row["kept_seconds"], row["tsnr"]) == (0.3, 0.75, 180.0, 50.0)
    assert (row["coverage"], row["unseen_regions"], row["barely_seen_regions"]) == (0.6, 1, 2)
    assert row["silent_regions"] == 3
    assert np.isnan(found.loc["007", "kept_seconds"])
    assert found.loc["009", list(QUALITY_MEASURES)].isna().all()
    assert found["alike"].to_dict() == {"007": "007", "008": "008", "009": "009"}


def test_a_cohort_without_any_scan_has_no_measures():
    people = pd.DataFrame({"subject": ["1", "2"], "mean_fd": np.nan, "fd_source": ""})
    scans = pd.DataFrame({"subject": ["1", "2"], "problem": ""})
    nothing = pd.DataFrame({"subject": pd.Series(dtype="str"), "region": "", "coverage": pd.Series(dtype="float64")})
    assert measure(people, scans, nothing, 0.5)[list(QUALITY_MEASURES)].isna().all(axis=None)
