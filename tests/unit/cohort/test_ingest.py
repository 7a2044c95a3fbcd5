"""Participants from codes: mapped, missing and refused values."""

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import yaml

from brainfed.cohort.phenotype import ingest
from brainfed.cohort.phenotype._table import read_phenotype_table
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import load_plan
from brainfed.runtime import UserError, read_table, write_table

SETTINGS = CohortSettings(
    source="timeseries",
    columns=ColumnSettings(mean_fd="fd"),
    codes=CodeSettings(sex={"1": "male", "2": "female"}, diagnosis={"1": "patient", "2": "control"}),
    missing=("-9999",),
)
HEADER = "participant_id;site;age;sex;diagnosis;fd"


def table(folder, *rows):
    path = folder / "table.csv"
    path.write_text("\n".join((HEADER, *rows)))
    return path


def test_codes_are_mapped(tmp_path):
    people = ingest(table(tmp_path, "s2;a;20.5;1;1;0.1", "s1;b;30;2;2;0.2"), SETTINGS, {"s1": "series file absent"})
    expected = pd.DataFrame(
        {
            "subject": ["s1", "s2"],
            "site": ["b", "a"],
            "age": [30.0, 20.5],
            "sex": ["female", "male"],
            "diagnosis": [0, 1],
            "mean_fd": [0.2, 0.1],
            "fd_source": ["table", "table"],
            "fd_problem": "",
            "has_series": [False, True],
            "absence": ["series file absent", ""],
        }
    )
    pd.testing.assert_frame_equal(people, expected, check_dtype=False)
    assert str(people["diagnosis"].dtype) == "Int8"


def test_missing_codes_are_missing_after_a_round_trip_to_parquet(tmp_path):
    people = ingest(table(tmp_path, "s1;a;-9999;-9999;-9999;-9999", "s2;a;;n/a;NA;"), SETTINGS, {})
    write_table(tmp_path / "people.parquet", people)
    held = read_table(tmp_path / "people.parquet")
    assert held[["age", "sex", "diagnosis", "mean_fd"]].isna().all(axis=None)


def test_motion_is_optional(tmp_path):
    settings = replace(SETTINGS, columns=ColumnSettings())
    assert ingest(table(tmp_path, "s1;a;20;1;1;0.1"), settings, {})["mean_fd"].isna().all()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("s1;a;20;3;1;0.1", r"line 2, subject s1: expected a sex code .*'1' \(male\), '2' \(female\), found '3'"),
        ("s1;a;20;1;x;0.1", r"expected a diagnosis code .*'1' \(patient\), '2' \(control\), found 'x'"),
        ("s1;a;20,5;1;1;0.1", r"expected the age in years as a number in column 'age', found '20,5'; .*decimal comma"),
        ("s1;a;old;1;1;0.1", r"found 'old'; fix it or list it in `missing`"),
        ("s1;a;-1;1;1;0.1", r"expected the age in years between 0 and 120 .*found '-1'"),
        ("s1;a;293;1;1;0.1", r"found '293'; fix it, .*, or set `columns.age_unit: months` if the whole column is"),
        ("s1;a;999;1;1;0.1", r"found '999'; fix it, or list it in `missing` if it is a missing code\.$"),
        ("s1;a;inf;1;1;0.1", r"as a number .*found 'inf'"),
        ("s1;a;1_0;1;1;0.1", r"as a number .*found '1_0'"),
        ("s1;a;20;1;1;-999", r"mean framewise displacement in mm between 0 and 100 .*found '-999'"),
        ("s1;;20;1;1;0.1", r"expected a site in column 'site', found none"),
    ],
)
def test_an_invalid_cell_is_refused(tmp_path, row, message):
    with pytest.raises(UserError, match=message):
        ingest(table(tmp_path, row), SETTINGS, {})


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(UserError, match=r"expected a column 'Diagnosis', found none; did you mean 'diagnosis'\?"):
        ingest(table(tmp_path, "s1;a;20;1;1;0.1"), replace(SETTINGS, columns=ColumnSettings(diagnosis="Diagnosis")), {})


def test_a_simulated_table_is_read_with_any_codes(tmp_path):
    path = tmp_path / "participants.tsv"
    path.write_text(
        "participant_id\tsite\tage\tsex\tdiagnosis\tmean_fd\nsub-0001\ta\t20\tmale\tpatient\t0.1\n", encoding="utf-8"
    )
    people = ingest(path, replace(SETTINGS, source="simulate"), {})
    assert people.loc[0, ["sex", "diagnosis", "mean_fd", "has_series"]].tolist() == ["male", 1, 0.1, True]


@pytest.mark.data
def test_abide(tmp_path):
    data = Path(os.environ["BRAINFED_DATA"])
    subprocess.run([sys.executable, data / "lay-out-abide", tmp_path, "--subjects", "20"], check=True)
    root = tmp_path / "ABIDE_pcp"
    settings = replace(
        SETTINGS,
        phenotype=str(root / "Phenotypic_V1_0b_preprocessed1.csv"),
        series=str(root / "cpac" / "filt_global" / "{file}_rois_cc200.1D"),
        regions=200,
        on_invalid="drop",
        missing=("-9999", "no_filename"),
        columns=ColumnSettings(
            subject="FILE_ID",
            subject_fallback="SUB_ID",
            file="FILE_ID",
            site="SITE_ID",
            age="AGE_AT_SCAN",
            sex="SEX",
            diagnosis="DX_GROUP",
            mean_fd="func_mean_fd",
        ),
    )
    listing = list_cohort("abide", settings)
    assert len(listing.subjects) == 1112
    assert len(listing.with_series) == 20
    assert Counter(listing.absences.values()) == {"no series": 77, "series file absent": 1035 - 20}
    people = ingest(settings.phenotype, settings, listing.absences)
    reference = pd.read_csv(data / "abide" / "subjects.csv").set_index("FILE_ID")
    ours = people.set_index("subject").loc[reference.index]
    assert (ours["diagnosis"] == reference["label_asd"]).all()
    assert (ours["age"] == reference["AGE_AT_SCAN"]).all()
    assert (ours["sex"] == reference["SEX"].map({1: "male", 2: "female"})).all()
    assert ours["mean_fd"].isna().sum() == 1


@pytest.mark.data
def test_the_rows_of_abide_871_are_the_subjects_of_parisot_et_al(monkeypatch):
    """Five columns of the phenotype table give the list of their code, subject_IDs.txt."""
    abide = Path(os.environ["BRAINFED_DATA"]) / "abide"
    repository = Path(__file__).parents[3]
    monkeypatch.chdir(repository)
    plan = load_plan(yaml.safe_load((repository / "config" / "abide-871.yaml").read_text()))
    (cohort,) = plan.project.cohorts.values()
    columns = replace(cohort.columns, subject="SUB_ID", subject_fallback=None)
    rows = read_phenotype_table(
        abide / "Phenotypic_V1_0b_preprocessed1.csv", columns, cohort.missing, wanted=cohort.rows
    )
    assert {row.subject for row in rows} == set((abide / "subject_IDs_871.txt").read_text().split())
    assert all(row.cells["FILE_ID"] for row in rows)
