"""What a user reads when something is wrong: one sentence, no traceback, and what is finished stays."""

import csv

import pandas as pd
import pytest

from workflow.project import CONFIG, new_project

pytestmark = pytest.mark.workflow

TINY = CONFIG["cohorts"]["tiny"]


def complaint(done):
    """The output of a run that failed, without a traceback in it."""
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "Traceback" not in output
    return output


def sentence(output, start):
    """The line that holds the message."""
    lines = {line.strip() for line in output.splitlines() if start in line}
    assert lines, output
    return min(lines, key=len)


def rewrite_table(project, change):
    """Apply `change` to every row (a dictionary) of the phenotype table."""
    path = project.folder / "resources" / "participants.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        change(row)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_broken_config_stops_before_any_job(project):
    project.configure(splits={"folds": 3})
    output = complaint(project.snakemake("-n", "tables", check=False))
    assert "unknown key 'splits'; did you mean 'split'?" in sentence(output, "config:")
    assert "rule " not in output


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("resources/participants.csv", "expected the phenotype file resources/participants.csv, found none"),
        ("resources/series", "expected the series of 40 subjects at resources/series/{file}.1D, found none"),
    ],
)
def test_missing_files_name_the_command_that_brings_them(project, missing, words):
    (project.folder / missing).rename(project.folder / "elsewhere")
    project.configure(cohorts={"tiny": TINY | {"fetch": "snakemake --cores 1 fetch_ours"}})
    output = complaint(project.snakemake("-n", "tables", check=False))
    found = sentence(output, "Cohort 'tiny'")
    assert words in found
    assert "run `snakemake --cores 1 fetch_ours`" in found


def test_a_duplicate_subject_is_named_with_both_lines(project):
    project.add_subject("sub-003", "alpha", "23", "male", "patient")
    output = complaint(project.snakemake("-n", "tables", check=False))
    assert "'sub-003' in lines 5 and 42" in sentence(output, "expected every subject once")


def test_an_unknown_sex_code_names_row_and_code(project):
    rewrite_table(project, lambda row: row.update(sex="f") if row["participant_id"] == "sub-007" else None)
    output = complaint(project.snakemake("results/tiny/cohort/participants.parquet", "--cores", "1", check=False))
    found = sentence(output, "subject sub-007")
    assert "participants.csv, line 9, subject sub-007: expected a sex code in column 'sex'" in found
    assert "'male' (male), 'female' (female), found 'f'" in found
    assert "Traceback" not in (project.folder / "logs" / "tiny" / "ingest_phenotypes.log").read_text()


def test_fewer_subjects_than_folds_names_the_institution(project):
    project.configure(split=CONFIG["split"] | {"folds": 15})
    output = complaint(project.snakemake("tables", "--cores", "1", check=False))
    found = sentence(output, "splits:")
    assert "institution-1 needs at least 15 different" in found
    assert "lower `folds`" in found


def test_copies_with_different_diagnoses_stop_the_run(project):
    series = project.folder / "resources" / "series"
    (series / "sub-004.1D").write_bytes((series / "sub-000.1D").read_bytes())
    output = complaint(project.snakemake("tables", "--cores", "1", check=False))
    found = sentence(output, "Subjects sub-000, sub-004")
    assert "expected one diagnosis of one scan" in found and "contradictory_copies: keep" in found


def test_a_site_with_one_class_is_kept_and_reported(project):
    def move(row):
        if row["diagnosis"] == "patient" and row["site"] == "alpha":
            row["site"] = "gamma"

    rewrite_table(project, move)
    project.snakemake("results/tiny/cohort/issues.tsv", "--cores", "1")
    issues = pd.read_csv(project.folder / "results" / "tiny" / "cohort" / "issues.tsv", sep="\t", keep_default_na=False)
    one_class = issues[issues["kind"] == "one class"].set_index("detail")["action"]
    assert one_class.to_dict() == {
        "site alpha: 10 subjects, all controls": "kept, its AUC is undefined",
        "site gamma: 10 subjects, all patients": "kept, its AUC is undefined",
    }


def test_a_site_of_a_study_trains_nothing_on_subjects_of_another_and_lists_its_issues(project):
    project.configure(
        split={"institutions": "sites", "folds": 2, "repeats": 1},
        graph={"scope": "local"},
        experiments={"methods": {"variants": ["ridge-local", "fedmlp"], "reference": "ridge-local"}},
        study={"sites": ["alpha", "beta"], "site": "alpha", "address": "hub.example.org:9092"},
    )
    output = complaint(project.snakemake("site", "--cores", "1", "--keep-going", check=False))
    found = sentence(output, "site 'alpha':")
    assert "expected subjects of this site alone, found those of 'beta' in the table; set `phenotype` to" in found
    assert (project.folder / "results" / "tiny" / "cohort" / "issues.tsv").exists()
    assert not list((project.folder / "results" / "tiny" / "methods").glob("sites-*/**/predictions.parquet"))


def test_a_nan_in_one_series_stops_its_shard_and_the_steps_after_it_alone(tmp_path):
    project = new_project(tmp_path)
    path = project.folder / "resources" / "series" / "sub-011.1D"
    lines = path.read_text().splitlines()
    lines[3] = "nan" + lines[3][lines[3].index("\t") :]
    path.write_text("\n".join(lines) + "\n")
    output = complaint(project.snakemake("tables", "--cores", "2", check=False))
    found = sentence(output, "Subject sub-011")
    assert "resources/series/sub-011.1D, line 4: expected a finite number in column 1, found 'nan'" in found
    results = project.folder / "results" / "tiny"
    shards = {"shard-00", "shard-01", "shard-02"}
    finished = {path.stem for path in (results / "timeseries" / "twelve").glob("*.safetensors")}
    assert len(finished) == 2
    (broken,) = shards - finished
    log = (project.folder / "logs" / "tiny" / "read_series" / f"twelve.{broken}.log").read_text()
    assert "Subject sub-011" in log
    assert "Traceback" not in log
    assert list(results.glob("cohort/participants/*.parquet"))
    assert not (results / "cohort" / "included.parquet").exists()

    project.write_subject("sub-011", 11)
    planned = project.planned()
    assert planned["read_series"] == 1
    assert planned["ingest_phenotypes"] == 0


def test_a_damaged_series_may_be_dropped_with_a_line_in_the_issues(project):
    path = project.folder / "resources" / "series" / "sub-011.1D"
    path.write_text("\n".join(path.read_text().splitlines()[:30]) + "\n")
    project.configure(cohorts={"tiny": TINY | {"on_invalid": "drop"}})
    project.snakemake("results/tiny/cohort/issues.tsv", "--cores", "2")
    issues = pd.read_csv(project.folder / "results" / "tiny" / "cohort" / "issues.tsv", sep="\t", keep_default_na=False)
    excluded = issues[issues["kind"] == "series unusable (damaged, short or not finite)"]
    assert excluded["subject"].tolist() == ["sub-011"]
    assert "expected at least 50 time points, found 29" in excluded["detail"].iloc[0]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("models", "found none; name some under `models`."),
        ("export_bids", "expected a cohort of `source: bids`, found none"),
        ("site", "found no `study.sites`"),
    ],
)
def test_a_target_with_nothing_to_make_says_so(project, target, words):
    output = complaint(project.snakemake("-n", target, check=False))
    assert words in sentence(output, f"{target}: expected")
    assert "InputFunctionException" not in output
    project.snakemake("-n", "tables", "--conda-prefix", target)


def test_a_key_that_stands_twice_stops_before_any_job(project):
    path = project.folder / "config.yaml"
    path.write_text(path.read_text() + "seed: 1\nthreads: 1\nseed: 2\n")
    lines = path.read_text().splitlines()
    first, second = (at for at, line in enumerate(lines, start=1) if line.startswith("seed"))
    output = complaint(project.snakemake("-n", "tables", check=False))
    found = sentence(output, "expected every key once")
    assert f"config.yaml: expected every key once, found the key 'seed' in lines {first} and {second}; remove" in found
    assert "rule " not in output


def test_a_key_that_stands_twice_in_the_file_below_is_found_too(project):
    (project.folder / "base.yaml").write_text("split: {folds: 2, count: 2, folds: 3}\n")
    project.configure(extends="base.yaml")
    output = complaint(project.snakemake("-n", "tables", check=False))
    assert "base.yaml: expected every key once, found the key 'folds' in lines 1 and 1" in output


AGAIN = pytest.mark.full("Another of a kind that unit tests have, too.")


@pytest.mark.parametrize(
    "subject", ["s{x}", *(pytest.param(name, marks=AGAIN) for name in ("s<x>", "s{", "{cohort}", "<results>"))]
)
def test_an_id_that_snakemake_would_read_as_a_wildcard_is_named(project, subject):
    project.add_subject(subject, "alpha", "23", "male", "patient")
    output = complaint(project.snakemake("-n", "tables", check=False))
    found = sentence(output, "expected a path without braces")
    assert f"Cohort 'tiny', subject {subject}: expected a path without braces and angle brackets" in found
    assert f"found resources/series/{subject}.1D; rename the file or folder (1 such subjects)" in found
    assert "rule " not in output


def test_braces_in_an_id_without_a_file_of_that_name_are_no_matter(project):
    path = project.folder / "resources" / "participants.csv"
    path.write_text(path.read_text().replace("participant_id,", "id,file,").replace("sub-", "s{x}-"))
    rows = [line.split(",") for line in path.read_text().splitlines()]
    files = [[row[0], row[0].replace("s{x}-", "sub-"), *row[1:]] for row in rows[1:]]
    path.write_text("\n".join(",".join(row) for row in [rows[0], *files]) + "\n")
    project.configure(cohorts={"tiny": TINY | {"columns": {"subject": "id", "file": "file"}}})
    assert project.planned()["ingest_phenotypes"] == 1


@pytest.mark.parametrize(
    ("key", "cohort"),
    [
        ("cohorts.tiny.atlas", {"tiny": TINY | {"atlas": "../../x"}}),
        *(
            pytest.param("cohorts.tiny.atlas", {"tiny": TINY | {"atlas": name}}, marks=AGAIN)
            for name in ("{x}", "<x>", "a" * 300)
        ),
        ("cohorts", {"../x": TINY}),
    ],
)
def test_a_name_that_would_lie_outside_the_project_is_refused(project, key, cohort):
    project.configure(cohorts=cohort)
    output = complaint(project.snakemake("-n", "tables", check=False))
    assert f"config: {key}: expected a name of letters, digits" in sentence(output, "expected a name of letters")
    assert "rule " not in output


def test_a_table_in_a_folder_with_braces_is_named(project):
    folder = project.folder / "resources" / "{mine}"
    folder.mkdir()
    (project.folder / "resources" / "participants.csv").rename(folder / "participants.csv")
    project.configure(cohorts={"tiny": TINY | {"phenotype": "resources/{mine}/participants.csv"}})
    output = complaint(project.snakemake("-n", "tables", check=False))
    assert "found resources/{mine}/participants.csv; rename the file or folder" in output
