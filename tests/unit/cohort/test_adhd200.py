"""The shipped configs of ADHD-200 list, include and divide the subjects of the sites' tables, made up and real."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from brainfed.checking._project import check_cohort
from brainfed.checking._split import SplitCheck
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.sources import list_cohort
from brainfed.cohort.splits import split
from brainfed.configuration import load_plan, read_config
from brainfed.configuration._loading import overlay
from brainfed.runtime import Streams, UserError
from support.files.adhd200_files import (
    REGIONS,
    ROOT,
    TABLES,
    VOLUMES,
    series_path,
    write_release,
    write_series,
    write_table,
)

REPOSITORY = Path(__file__).resolve().parents[3]
LABELLED, TYPES = "adhd200-labelled", "adhd200-types"
EACH = 2
"""Made-up subjects of a diagnosis and table."""
MADE_UP = {"client-1": 8, "client-2": 16, "client-3": 18, "client-4": 16}


@pytest.fixture(scope="module")
def loaded():
    """The shipped config of sites, with two folds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        return load_plan(overlay(read_config(Path("config/adhd200-sites.yaml")), {"split": {"folds": 2}}))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A small made-up release."""
    folder = tmp_path_factory.mktemp("release")
    write_release(folder, EACH)
    return folder


@pytest.fixture
def plan(loaded, tmp_path, monkeypatch):
    """The config in a working directory without files."""
    monkeypatch.chdir(tmp_path)
    return loaded


@pytest.fixture
def release(plan, written, tmp_path):
    """The config in a working directory with a copy of the release."""
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)
    return plan


def participants(name, settings):
    listing = list_cohort(name, settings)
    return ingest(settings.phenotype, settings, listing.absences)


def divided(people, plan, classes=(), folds=2):
    """Institution and fold of everybody who has a series and a diagnosis."""
    stays = people["has_series"] & people["diagnosis"].notna()
    included = pd.DataFrame({"subject": people["subject"], "included": stays, "twin_group": people["subject"]})
    settings = replace(plan.project.split, folds=folds)
    return split(included, people, settings, Streams(0, 0), "diagnosis", classes)


def test_both_cohorts_read_the_tables_of_the_same_files(plan):
    labelled, types = plan.project.cohorts[LABELLED], plan.project.cohorts[TYPES]
    expected = replace(labelled, classes=types.classes, codes=replace(labelled.codes, diagnosis=types.codes.diagnosis))
    assert types == expected
    assert labelled.phenotype == tuple(str(ROOT / f"phenotypic/{name}_phenotypic.csv") for name in TABLES)


def test_series_of_both_archives_are_found_below_one_folder(release, tmp_path):
    settings = release.project.cohorts[LABELLED]
    series_path(tmp_path, "3", "2003").unlink()
    write_series(series_path(tmp_path, "8", "9999999"), 0)
    listing = list_cohort(LABELLED, settings)
    assert len(listing.subjects) == 60
    assert listing.absences == {"2003": "series file absent"}
    assert listing.unlisted == ("sfnwmrda9999999_session_1_rest_1_cc200_TCs.1D",)


def test_the_check_reads_every_series_and_names_who_leaves(release, tmp_path):
    settings = release.project.cohorts[TYPES]
    series_path(tmp_path, "3", "2003").unlink()
    checked = check_cohort(TYPES, settings)
    assert checked.regions == REGIONS
    assert {person.timepoints for person in checked.people} == {VOLUMES}
    assert len(checked.people) == 60 - 2 - 7 * EACH - 1
    assert [(one.subject, one.reason) for one in checked.leavers] == [("2003", "series file absent")]
    severities = {found.severity for found in checked.findings}
    assert severities == {"drops", "notes"}


def test_brown_needs_no_institution_and_an_absent_series_elsewhere_no_other_one(release, tmp_path):
    settings = release.project.cohorts[LABELLED]
    series_path(tmp_path, "3", "2003").unlink()
    checked = check_cohort(LABELLED, settings)
    assert not list(SplitCheck(checked, [release.experiments["site-groups"]]).splits())
    people = participants(LABELLED, settings)
    assert "Brown" in set(people["site"])
    assert divided(people, release)["institution"].value_counts().to_dict() == MADE_UP | {"client-2": 15}


def test_three_types_leave_out_who_is_hyperactive(release):
    settings = release.project.cohorts[TYPES]
    people = participants(TYPES, settings)
    assert people["diagnosis"].value_counts().to_dict() == {0: 8 * EACH, 1: 7 * EACH, 2: 7 * EACH}
    assert people["absence"].value_counts().to_dict() == {"": 46, "excluded by diagnosis": 7 * EACH}
    parts = divided(people, release, settings.classes).merge(people, on="subject")
    assert set(parts.groupby(["institution", "fold", "diagnosis"]).size().unstack().min()) == {1}


def test_the_table_of_washu_names_its_subjects_in_another_column(release, tmp_path):
    write_table(tmp_path, "WashU", "8", [("15001", "0"), ("15002", "0")])
    write_series(series_path(tmp_path, "8", "15001"), 0)
    settings = release.project.cohorts[LABELLED]
    settings = replace(settings, phenotype=(*settings.phenotype, str(ROOT / "phenotypic/WashU_phenotypic.csv")))
    people = participants(LABELLED, settings)
    assert people.loc[people["site"] == "WashU", "absence"].tolist() == ["", "series file absent"]
    with pytest.raises(UserError, match="expected every site of the cohort in a group, WashU is in none"):
        divided(people, release)


def test_a_folder_without_series_is_one_sentence(release, tmp_path):
    shutil.rmtree(tmp_path / ROOT / "series")
    for name, wanted in ((LABELLED, 60), (TYPES, 60 - 7 * EACH)):
        findings = check_cohort(name, release.project.cohorts[name]).findings
        (found,) = [found for found in findings if found.severity == "stops"]
        assert f"expected the series of {wanted} subjects at resources/adhd200/series/**/sfnwmrda" in found.sentence


def test_absent_tables_are_named(plan):
    findings = check_cohort(LABELLED, plan.project.cohorts[LABELLED]).findings
    assert [found.severity for found in findings] == ["stops"] * len(TABLES)
    assert "expected the phenotype file resources/adhd200/phenotypic/Brown_TestRelease" in findings[0].sentence


@pytest.fixture
def real(plan, tmp_path):
    """The sites' real tables, and an empty file for everybody's series."""
    shutil.copytree(Path(os.environ["BRAINFED_DATA"]) / "adhd200-phenotypic", tmp_path / ROOT / "phenotypic")
    for path in (tmp_path / ROOT / "phenotypic").iterdir():
        for subject, site in pd.read_csv(path, dtype=str).iloc[:, :2].itertuples(index=False):
            file = series_path(tmp_path, site, subject)
            file.parent.mkdir(parents=True)
            file.touch()
    return plan


@pytest.mark.data
def test_the_real_tables_give_four_institutions(real):
    people = participants(LABELLED, real.project.cohorts[LABELLED])
    assert people["diagnosis"].value_counts(dropna=False).to_dict() == {0: 430, 1: 261, pd.NA: 26}
    parts = divided(people, real, folds=5)
    sizes = {"client-1": 222, "client-2": 131, "client-3": 202, "client-4": 136}
    assert parts["institution"].value_counts().to_dict() == sizes
    labels = parts.merge(people[["subject", "diagnosis"]], on="subject")
    assert labels.groupby("institution")["diagnosis"].sum().to_dict() == {
        "client-1": 123, "client-2": 47, "client-3": 43, "client-4": 48,
    }  # fmt: skip


@pytest.mark.data
def test_the_real_tables_have_three_types_in_every_test_fold(real):
    settings = real.project.cohorts[TYPES]
    people = participants(TYPES, settings)
    assert people["diagnosis"].value_counts(dropna=False).to_dict() == {0: 430, 1: 154, 2: 94, pd.NA: 39}
    assert people["absence"].value_counts().to_dict() == {"": 704, "excluded by diagnosis": 13}
    parts = divided(people, real, settings.classes, folds=5).merge(people, on="subject")
    held = parts.groupby(["institution", "fold", "diagnosis"]).size().unstack()
    assert held.shape == (20, 3) and held.notna().all(axis=None)
