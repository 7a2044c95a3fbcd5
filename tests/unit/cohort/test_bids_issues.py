"""Issues of a BIDS cohort: runs, headers, strangers; mean displacement of participants."""

import math

import pandas as pd
import pytest

from brainfed.cohort.phenotype import ingest, mean_displacement
from brainfed.cohort.phenotype._participant import displacement_problem
from brainfed.cohort.settings import CohortSettings, ColumnSettings
from support.files.bids_dataset import confounds
from support.files.quality_tables import measure, people_table, quality_table
from support.files.run_of_cohort import decide

SUBJECTS = ("01", "02", "03")


def issues_of(runs=(2, 2, 2), header=(math.nan,) * 3, strangers=(), problems=("",) * 3):
    people = people_table(SUBJECTS, [1, 0, 1], fd_source="scan", fd_problem=problems)
    quality = quality_table(SUBJECTS, header_tr=header, runs=runs)
    coverage = pd.DataFrame({"subject": [], "region": [], "coverage": []})
    _, issues = decide(people, quality, coverage, CohortSettings(source="bids"), strangers=strangers)
    return [tuple(row) for row in issues.itertuples(index=False)]


def test_equal_runs_and_headers_raise_no_issue():
    assert issues_of() == []


def test_a_subject_with_fewer_runs_than_most_is_listed():
    assert issues_of(runs=(2, 1, 2)) == [("02", "fewer runs", "1 used, most subjects have 2", "kept")]


def test_a_header_that_disagrees_with_the_sidecar_is_listed():
    (issue,) = issues_of(header=(math.nan, math.nan, 1.0))
    assert issue[:3] == ("03", "repetition times disagree", "sidecar 2 s, image header 1 s")


def test_a_subject_with_images_and_no_row_is_listed():
    (issue,) = issues_of(strangers=("sub-09",))
    assert issue == ("sub-09", "not in the table", "images, and no row in the phenotype table", "left out")


def write_confounds(folder, name, **columns):
    path = folder / name
    confounds(20, 1).assign(**columns).to_csv(path, sep="\t", index=False, na_rep="n/a")
    return path


def test_the_mean_displacement_counts_every_volume_but_the_first_of_a_run(tmp_path):
    one = write_confounds(tmp_path, "1.tsv", framewise_displacement=[math.nan, *[0.2] * 19])
    other = write_confounds(tmp_path, "2.tsv", framewise_displacement=[math.nan, 2.1, *[0.1] * 18])
    assert mean_displacement([one, other]) == pytest.approx((19 * 0.2 + 2.1 + 18 * 0.1) / 38)
    assert math.isnan(mean_displacement([]))


def test_a_table_without_displacement_gives_none(tmp_path):
    path = write_confounds(tmp_path, "c.tsv")
    pd.read_csv(path, sep="\t").drop(columns="framewise_displacement").to_csv(path, sep="\t", index=False)
    assert math.isnan(mean_displacement([path]))
    assert displacement_problem("01", [path]) == ""


@pytest.mark.parametrize("cell", ["still", "inf", "-3", "1_0", "0,2", "1e400"])
def test_an_invalid_displacement_affects_its_subject_only(tmp_path, cell):
    good = write_confounds(tmp_path, "c.tsv", framewise_displacement=[math.nan, *[0.3] * 19])
    bad = write_confounds(tmp_path, "b.tsv", framewise_displacement=["n/a", "0.1", cell, *["0.1"] * 17])
    table = tmp_path / "participants.tsv"
    table.write_text("participant_id\tsite\tage\tsex\tdiagnosis\n01\ta\t2\tmale\tpatient\n02\ta\t2\tmale\tcontrol\n")
    people = ingest(table, CohortSettings(source="bids"), {}, {"01": [good], "02": [good, bad]}).set_index("subject")
    assert people["mean_fd"].to_dict() == pytest.approx({"01": 0.3, "02": math.nan}, nan_ok=True)
    assert people["fd_problem"]["01"] == ""
    problem = (
        f"Subject 02, {bad}, line 4: expected a displacement in mm in column 'framewise_displacement', found '{cell}'"
    )
    assert people["fd_problem"]["02"].startswith(problem)
    assert [one for one in issues_of(problems=("", people["fd_problem"]["02"], "")) if one[0] == "02"] == [
        ("02", "motion not readable", people["fd_problem"]["02"], "kept, how much it moved is not known")
    ]


def test_motion_is_read_in_any_encoding_and_an_absent_file_is_named(tmp_path):
    path = write_confounds(tmp_path, "c.tsv", framewise_displacement=[math.nan, *[0.3] * 19], bemerkung="unbewegt")
    path.write_bytes(path.read_bytes().replace(b"unbewegt", "für".encode("latin-1")))
    assert mean_displacement([path]) == pytest.approx(0.3)
    assert math.isnan(mean_displacement([path, tmp_path / "gone.tsv"]))
    assert "gone.tsv: expected a table of confounds" in displacement_problem("01", [path, tmp_path / "gone.tsv"])


def test_the_mean_displacement_of_the_phenotype_table_precedes_the_measured_one(tmp_path):
    measured = write_confounds(tmp_path, "c.tsv", framewise_displacement=[math.nan, *[0.3] * 19])
    table = tmp_path / "participants.tsv"
    table.write_text(
        "participant_id\tsite\tage\tsex\tdiagnosis\tfd\n"
        "01\ta\t20\tmale\tpatient\t0.1\n02\ta\t20\tmale\tpatient\tn/a\n03\ta\t20\tmale\tcontrol\tn/a\n"
    )
    tables = {"01": [measured], "02": [measured]}
    settings = CohortSettings(source="bids", columns=ColumnSettings(mean_fd="fd"))
    people = ingest(table, settings, {}, tables).set_index("subject")
    assert people["mean_fd"].to_dict() == pytest.approx({"01": 0.1, "02": 0.3, "03": math.nan}, nan_ok=True)
    assert people["fd_source"].to_dict() == {"01": "table", "02": "scan", "03": ""}
    nothing = pd.DataFrame({"subject": [], "region": [], "coverage": []})
    scans = pd.DataFrame({"subject": ["01", "02", "03"], "mean_fd": [0.31, 0.31, 0.4], "problem": ""})
    measured = measure(people.reset_index(), scans, nothing, 0.5).set_index("subject")
    assert measured["mean_fd"].to_dict() == pytest.approx({"01": 0.1, "02": 0.3, "03": 0.4})
    assert measured["fd_source"].to_dict() == {"01": "table", "02": "scan", "03": "scan"}
