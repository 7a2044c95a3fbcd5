"""FreeSurfer's measures beside series: what a listing refuses, what a check finds, what the jobs get."""

import numpy as np
import pandas as pd
import pytest

from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import further_identities, list_cohort
from brainfed.configuration import validate
from brainfed.configuration.layout import CohortInputs, cohorts_yielding
from brainfed.runtime import UserError
from support.files.freesurfer_project import write_subject, write_tables

SUBJECTS = [f"s{number:02d}" for number in range(8)]
REGIONS, VOLUMES = 4, 60


@pytest.fixture
def cohort(tmp_path):
    """Eight subjects with series; settings with these settings of FreeSurfer."""
    table = pd.DataFrame(
        {
            "participant_id": SUBJECTS,
            "site": ["a", "b"] * 4,
            "age": 30,
            "sex": "male",
            "diagnosis": ["patient", "patient", "control", "control"] * 2,
            "scan": [f"{subject}_mri" for subject in SUBJECTS],
        }
    )
    table.to_csv(tmp_path / "participants.csv", index=False)
    for number, subject in enumerate(SUBJECTS):
        values = np.random.default_rng(number).standard_normal((VOLUMES, REGIONS))
        np.savetxt(tmp_path / f"{subject}_mri.1D", values, delimiter="\t", header="r1\tr2\tr3\tr4", comments="")

    def settings_of(**freesurfer):
        values = {
            "source": "timeseries",
            "phenotype": str(tmp_path / "participants.csv"),
            "series": str(tmp_path / "{file}.1D"),
            "regions": REGIONS,
            "columns": {"file": "scan"},
            "freesurfer": freesurfer,
        }
        return validate(CohortSettings, values, "c")

    return settings_of


def tables_of(folder, subjects):
    return write_tables(folder / "stats", subjects)


def sentences_of(settings, severity):
    return [found.sentence for found in check_cohort("c", settings).findings if found.severity == severity]


@pytest.mark.parametrize(
    ("pattern", "expected"), [("{file}", "s00_mri"), ("{subject}", "s00"), ("fs-{site}-{subject}", "fs-a-s00")]
)
def test_an_id_is_made_of_file_subject_and_site(cohort, tmp_path, pattern, expected):
    settings = cohort(tables=tables_of(tmp_path, [expected]), id=pattern)
    identities = further_identities("c", list_cohort("c", settings).subjects, settings)
    assert list(identities) == SUBJECTS
    assert identities["s00"] == expected


def test_the_jobs_get_the_ids_the_tables_and_leave_to_drop(cohort, tmp_path):
    settings = cohort(tables=tables_of(tmp_path, SUBJECTS), id="{subject}")
    inputs = CohortInputs("c", settings, list_cohort("c", settings))
    assert inputs.measured_subjects() == [[subject, subject] for subject in SUBJECTS]
    assert inputs.stats_files() == list(settings.freesurfer.tables)
    assert inputs.measure_settings()["on_invalid"] == "drop"
    assert settings.on_invalid == "error"
    assert inputs.further_quality() == ["results/c/morphometry/measures-quality.parquet"]
    assert not any("morphometry" in path for path in inputs.shard_files("-quality.parquet"))
    assert cohorts_yielding({"c": settings}, "morphometry") == ["c"]


def test_a_cohort_without_freesurfer_has_series_alone(cohort):
    settings = cohort()
    inputs = CohortInputs("c", settings, list_cohort("c", settings))
    assert inputs.further_quality() == []
    assert cohorts_yielding({"c": settings}, "morphometry") == []


def test_measures_of_everybody_have_no_findings(cohort, tmp_path):
    assert check_cohort("c", cohort(tables=tables_of(tmp_path, SUBJECTS), id="{subject}")).findings == ()


def test_a_subject_without_measures_is_a_note_and_takes_part(cohort, tmp_path):
    checked = check_cohort("c", cohort(tables=tables_of(tmp_path, SUBJECTS[2:]), id="{subject}"))
    (found,) = checked.findings
    assert (found.severity, found.subjects) == ("notes", ("s00", "s01"))
    assert (
        "2 of 8 subjects with a scan have no whole FreeSurfer measures and lack this view: s00, s01." in found.sentence
    )
    assert len(checked.people) == 8


def test_ids_that_no_table_has_stop_the_run(cohort, tmp_path):
    (sentence,) = sentences_of(cohort(tables=tables_of(tmp_path, SUBJECTS)), "stops")
    assert "expected rows of the cohort's subjects ('s00_mri' ...), found none among 8 ('s00' ...)" in sentence
    assert "fix `freesurfer.id`" in sentence


def refused(settings):
    """The sentence of the listing, which the check reports too, once."""
    with pytest.raises(UserError) as error:
        list_cohort("c", settings)
    assert sentences_of(settings, "stops") == [str(error.value)]
    return str(error.value)


def test_an_absent_table_stops_the_run(cohort, tmp_path):
    sentence = refused(cohort(tables=[str(tmp_path / "lh.tsv")]))
    assert sentence.startswith(f"Cohort 'c': expected the FreeSurfer table {tmp_path / 'lh.tsv'}, found none")


def test_an_absent_subjects_dir_stops_the_run(cohort, tmp_path):
    assert "expected the SUBJECTS_DIR" in refused(cohort(subjects_dir=str(tmp_path / "none")))


def test_a_slot_that_no_subject_has_stops_the_run(cohort, tmp_path):
    sentence = refused(cohort(tables=tables_of(tmp_path, SUBJECTS), id="{session}"))
    assert "expected {file}, {subject} or {site} in the `freesurfer.id` pattern, found '{session}'" in sentence


def test_a_subjects_dir_of_other_people_stops_the_run(cohort, tmp_path):
    write_subject(tmp_path / "subjects", "s00")
    sentence = refused(cohort(subjects_dir=str(tmp_path / "subjects")))
    assert f"found none of 8 (the first is {tmp_path / 'subjects' / 's00_mri' / 'stats'} of subject s00)" in sentence


def test_a_subjects_dir_with_some_of_the_subjects_is_enough(cohort, tmp_path):
    for subject in SUBJECTS[:3]:
        write_subject(tmp_path / "subjects", f"{subject}_mri")
    settings = cohort(subjects_dir=str(tmp_path / "subjects"))
    (sentence,) = sentences_of(settings, "notes")
    assert sentence.startswith("5 of 8 subjects with a scan have no whole FreeSurfer measures")
    assert len(CohortInputs("c", settings, list_cohort("c", settings)).stats_files()) == 3 * 3
