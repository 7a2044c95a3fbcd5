"""FreeSurfer's measures beside region series: joined by id into features of two views, missing ones listed."""

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime import read_arrays
from support.files.freesurfer_project import write_tables
from workflow.project import CONFIG, Project, new_project

pytestmark = [pytest.mark.full("A whole run, whose parts are tested without Snakemake."), pytest.mark.workflow]

SUBJECTS = [f"sub-{number:03d}" for number in range(40)]
WITHOUT = "sub-007"
COHORT = CONFIG["cohorts"]["tiny"]
THICKNESS = {"kind": "morphometry", "weight": 0.15, "centre": "site", "standardise": True}
FITTED = {"connectome": {"connectivity": "tangent"}, "thickness": THICKNESS | {"harmonise": "combat"}}
EXPERIMENTS = {"methods": {"variants": ["ridge-central", "both", "fitted"], "reference": "ridge-central"}}
LEFT, RIGHT = (f"resources/stats/{side}.aparc_table_thickness.tsv" for side in ("lh", "rh"))


def configured(project: Project, weight: float = 0.15, **freesurfer: object) -> None:
    measured = {"id": "fs_{subject}", "measures": ["thickness"]} | freesurfer
    views = {"connectome": {}, "thickness": THICKNESS | {"weight": weight}}
    project.configure(
        cohorts={"tiny": COHORT | {"freesurfer": measured}},
        variants={
            name: {"method": "ridge", "features": {"views": held}}
            for name, held in (("both", views), ("fitted", FITTED))
        },
        experiments=EXPERIMENTS,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A run with two views; one subject has no row in the first table of thickness."""
    project = new_project(tmp_path_factory.mktemp("views"))
    write_tables(project.folder / "resources" / "stats", [f"fs_{subject}" for subject in SUBJECTS])
    lines = (project.folder / LEFT).read_text().splitlines(keepends=True)
    (project.folder / LEFT).write_text("".join(line for line in lines if WITHOUT not in line))
    configured(project, tables=[LEFT, RIGHT])
    project.snakemake("--cores", "1", "tables")
    return project


def test_a_subject_without_measures_stays_and_lacks_the_view(finished):
    results = finished.folder / "results" / "tiny"
    (path,) = results.glob("features/views-*/all.safetensors")
    file = read_arrays(path, ["features"])
    connectome, thickness = file.metadata["views"]
    assert file.metadata["subjects"] == sorted(SUBJECTS)[: len(file.metadata["subjects"])]
    assert (connectome["lacking"], thickness["lacking"]) == ([], [WITHOUT])
    block = file.arrays["features"][:, thickness["start"] : thickness["stop"]]
    np.testing.assert_array_equal((block == 0).all(axis=1), [one == WITHOUT for one in file.metadata["subjects"]])
    predictions = pd.read_parquet(next(results.glob("methods/*/both/repeat-0/predictions.parquet")))
    assert WITHOUT in set(predictions["subject"])


def test_views_that_are_fitted_are_joined_by_fold_without_the_subject_that_lacks_one(finished):
    results = finished.folder / "results" / "tiny"
    paths = sorted(results.glob("features/views-*/repeat-0/fold-*.safetensors"))
    assert len(paths) == 2
    for path in paths:
        file = read_arrays(path, ["features"])
        connectome, thickness = file.metadata["views"]
        assert (connectome["lacking"], thickness["lacking"]) == ([], [WITHOUT])
        assert thickness["harmonised"]
        assert path.with_name(f"{path.stem}-timing.json").is_file()
    first, second = (read_arrays(path, ["features"]).arrays["features"] for path in paths)
    assert not np.array_equal(first, second)


def test_the_issues_list_it(finished):
    issues = pd.read_csv(finished.folder / "results/tiny/cohort/issues.tsv", sep="\t", keep_default_na=False)
    (issue,) = issues[issues["kind"] == "no FreeSurfer measures beside the scan"].to_dict("records")
    assert (issue["subject"], issue["action"]) == (WITHOUT, "kept, lacks this view")
    assert f"found no row 'fs_{WITHOUT}' in {LEFT}" in issue["detail"]


def test_another_weight_joins_again_and_measures_nothing_again(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configured(project, weight=0.3, tables=[LEFT, RIGHT])
    assert project.planned() == {"join_views": 1, "train_method": 1, "score_experiment": 1}


def test_an_id_that_no_row_of_a_table_has_is_one_sentence(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configured(project, tables=[RIGHT], id="{subject}_fs")
    done = project.snakemake("--cores", "1", "results/tiny/morphometry/measures.safetensors", check=False)
    assert done.returncode
    log = (project.folder / "logs/tiny/read_measures.log").read_text()
    assert "expected rows of the cohort's subjects ('sub-000_fs' ...), found none among 40" in log
    assert "Traceback" not in log


def test_an_id_that_no_folder_has_stops_the_run_at_its_start(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    (project.folder / "resources" / "subjects").mkdir()
    configured(project, subjects_dir="resources/subjects")
    done = project.snakemake("-n", check=False)
    assert done.returncode
    assert "expected stats folders of its subjects in resources/subjects, found none of 40" in done.stdout + done.stderr
