"""The shipped configs of NCANDA and HCP list and read a user's own files as their owners lay them out."""

from pathlib import Path

import pytest

from brainfed.checking._project import check_cohort
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import load_plan, read_config
from brainfed.configuration._loading import overlay
from support.files.fglbc_cohorts import COHORTS, REGIONS

REPOSITORY = Path(__file__).resolve().parents[3]
SUBJECTS = 12
DRINKING = {
    "target": "diagnosis",
    "columns": {"diagnosis": "exceeds_bl_drinking"},
    "codes": {"diagnosis": {"N": "control", "Y": "patient"}},
}


def settings_of(name, **changes):
    """Settings of the cohort in the shipped config, and its split."""
    content = overlay(read_config(Path(f"config/fglbc-{name}.yaml")), {"cohorts": {name: changes}})
    project = load_plan(content).project
    return project.cohorts[name], project.split


@pytest.fixture(params=COHORTS)
def cohort(request, tmp_path, monkeypatch):
    """Name and settings of a cohort whose files are in the working directory."""
    monkeypatch.chdir(REPOSITORY)
    settings, split = settings_of(request.param)
    assert (split.institutions, split.count, split.folds) == ("random", 4, 5)
    monkeypatch.chdir(tmp_path)
    COHORTS[request.param](tmp_path, SUBJECTS)
    return request.param, settings


def participants(name, settings):
    absences = {listed.subject: listed.absence for listed in list_cohort(name, settings).subjects if listed.absence}
    return ingest(settings.phenotype, settings, absences)


def test_every_subject_is_listed_and_one_lacks_its_series(cohort):
    name, settings = cohort
    listing = list_cohort(name, settings)
    assert len(listing.subjects) == SUBJECTS
    assert [listed.has_series for listed in listing.subjects] == [True] * (SUBJECTS - 1) + [False]
    assert not listing.unlisted
    assert settings.regions == REGIONS[name]


def test_sex_is_the_label_and_no_phenotype(cohort):
    name, settings = cohort
    people = participants(name, settings)
    assert people["diagnosis"].value_counts().to_dict() == {0: SUBJECTS // 2, 1: SUBJECTS // 2}
    assert people["sex"].isna().all()
    assert people["site"].nunique() == (5 if name == "ncanda" else 3)
    assert people["age"].notna().all() == (name == "ncanda")


def test_the_check_reads_all_files_and_stops_nothing(cohort):
    name, settings = cohort
    checked = check_cohort(name, settings)
    assert checked.regions == REGIONS[name] and len(checked.people) == SUBJECTS - 1
    assert len({person.timepoints for person in checked.people}) == SUBJECTS - 1
    assert not [finding for finding in checked.findings if finding.severity == "stops"]


def test_drinking_takes_the_place_of_sex_where_the_config_asks(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    settings, _ = settings_of("ncanda", **DRINKING)
    monkeypatch.chdir(tmp_path)
    COHORTS["ncanda"](tmp_path, SUBJECTS)
    people = participants("ncanda", settings).set_index("subject")
    assert people.loc["NCANDA_S00003", "diagnosis"] == 1 and people.loc["NCANDA_S00004", "diagnosis"] == 0
    assert people.loc["NCANDA_S00003", "sex"] == "female"


def test_the_comment_of_the_config_names_the_keys_of_that_other_target():
    text = (REPOSITORY / "config/fglbc-ncanda.yaml").read_text()
    comments = " ".join(
        line.strip().removeprefix("#").strip() for line in text.splitlines() if line.strip().startswith("#")
    )
    assert "`target: diagnosis`" in comments
    assert "`diagnosis: exceeds_bl_drinking` under `columns`" in comments
    assert '`diagnosis: {"N": control, "Y": patient}` under `codes`' in comments
