"""A cohort of FreeSurfer tables from tables to report, and what a dry run says of a SUBJECTS_DIR."""

import pandas as pd
import pytest

from brainfed.runtime import read_arrays
from support.files.freesurfer_project import write_subject, write_tables
from workflow.project import Project, new_project

pytestmark = [
    pytest.mark.full("A whole run of a source, whose parts are tested without Snakemake."),
    pytest.mark.workflow,
]

SUBJECTS = [f"sub-{number:03d}" for number in range(40)]
PATIENTS = [subject for number, subject in enumerate(SUBJECTS) if number // 4 % 2 == 0]
COHORT = {
    "source": "freesurfer",
    "atlas": "Desikan-Killiany",
    "phenotype": "resources/participants.csv",
    "on_invalid": "drop",
}
VARIANTS = ["majority", "ridge-local", "ridge-central", "logistic-central"]
EXPERIMENTS = {"methods": {"variants": VARIANTS, "reference": "ridge-central"}}


def configured(project: Project, **freesurfer: object) -> None:
    project.configure(
        cohorts={"tiny": COHORT | {"freesurfer": freesurfer}},
        features={"kind": "morphometry"},
        experiments=EXPERIMENTS,
        variants={},
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A run from tables to report; one subject has no row in the first table."""
    project = new_project(tmp_path_factory.mktemp("freesurfer"))
    tables = write_tables(project.folder / "resources" / "stats", SUBJECTS, PATIENTS)
    path = project.folder / "resources" / "stats" / "aseg_table.tsv"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "sub-007" not in line))
    configured(project, tables=[table.removeprefix(f"{project.folder}/") for table in tables])
    project.snakemake("--cores", "1")
    return project


def test_features_are_the_measures_of_the_included(finished):
    results = finished.folder / "results" / "tiny"
    included = pd.read_parquet(results / "cohort" / "included.parquet").set_index("subject")
    assert list(included.index[~included["included"]]) == ["sub-007"]
    issues = pd.read_csv(results / "cohort" / "issues.tsv", sep="\t", keep_default_na=False)
    (detail,) = issues.loc[issues["subject"] == "sub-007", "detail"]
    assert "found no row 'sub-007' in resources/stats/aseg_table.tsv" in detail
    (path,) = results.glob("features/morphometry-*/all.safetensors")
    file = read_arrays(path, ["features"])
    assert file.arrays["features"].shape == (39, 10)
    assert file.metadata["regions"][0] == "Left-Hippocampus"


def test_a_smaller_hippocampus_is_found(finished):
    table = pd.read_csv(finished.folder / "results" / "tiny" / "tables" / "methods.tsv", sep="\t")
    scores = table.set_index(["variant", "scope", "metric"])["mean"]
    assert scores["ridge-central", "pooled", "auc"] > 0.8


def test_the_report_speaks_of_measures(finished):
    page = (finished.folder / "results" / "reports" / "tiny.html").read_text(encoding="utf-8")
    assert "<h2>Measures</h2>" in page
    assert "Of 10 FreeSurfer measures" in page
    assert "1 is the same in everybody" in page
    assert "The strongest is Left-Hippocampus (d = −" in page
    assert "No two subjects have the same data" in page
    assert "FreeSurfer measures unusable" in page
    assert "Fischl B (2012)" in page
    for word in ("correlations", "connections between", "regions without signal", "repetition time"):
        assert word not in page.split("The config, every default filled in")[0], word


def test_another_choice_of_measures_reads_them_again_and_asks_for_no_new_phenotypes(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    tables = [f"resources/stats/{name}" for name in ("aseg_table.tsv", "lh.aparc_table_thickness.tsv")]
    configured(project, tables=tables, normalise="ratio")
    planned = project.planned()
    assert {"read_measures", "compute_morphometry", "include_subjects"} <= set(planned)
    assert not {"ingest_phenotypes", "extract_series", "read_series", "compute_connectivity"} & set(planned)


def test_a_subjects_dir_is_read_by_one_job_with_its_stats_files_as_inputs(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    for subject in SUBJECTS[:20]:
        write_subject(project.folder / "resources" / "subjects", subject)
    configured(project, subjects_dir="resources/subjects")
    done = project.snakemake("-n", "--quiet=host", "results/tiny/morphometry/measures.safetensors")
    assert "resources/subjects/sub-019/stats/rh.aparc.stats" in done.stdout
    assert "resources/subjects/sub-020/stats" not in done.stdout


def test_connectivity_of_a_freesurfer_cohort_is_refused_before_any_job(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    tables = ["resources/stats/aseg_table.tsv"]
    project.configure(
        cohorts={"tiny": COHORT | {"freesurfer": {"tables": tables}}}, experiments=EXPERIMENTS, variants={}
    )
    done = project.snakemake("-n", check=False)
    output = done.stdout + done.stderr
    assert done.returncode
    assert "Traceback" not in output
    assert "expected variants with morphometry features for cohort 'tiny', whose source is 'freesurfer'" in output
