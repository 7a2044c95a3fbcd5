"""The same seed gives the same bytes, whatever the order and the parallelism of the jobs, and however they start."""

import json
import shutil

import pytest

from workflow.project import new_project

pytestmark = pytest.mark.workflow

BY_THEMSELVES = {"BRAINFED_FORKS": "off"}
ARTEFACTS = (
    "timeseries/**/*.safetensors",
    "timeseries/**/*.parquet",
    "cohort/[!.]*.*",
    "cohort/participants/[!.]*",
    "splits/**/*.parquet",
    "features/**/*.safetensors",
    "graphs/**/*.safetensors",
    "methods/**/*.parquet",
    "methods/**/*.safetensors",
    "methods/**/cost.json",
    "tables/*.tsv",
)


def contents(project):
    """Path -> bytes of everything that must not differ."""
    results = project.folder / "results" / "tiny"
    return {
        path.relative_to(results).as_posix(): path.read_bytes()
        for pattern in ARTEFACTS
        for path in sorted(results.glob(pattern))
    }


def versions(project):
    """Result -> the libraries that are on record for it."""
    results = project.folder / "results" / "tiny"
    return {
        path.relative_to(results).as_posix(): json.loads(path.read_text())["versions"]
        for path in results.glob("**/.*.made")
    }


@pytest.mark.parametrize(
    "deleted", [False, pytest.param(True, marks=pytest.mark.full("Without the package, jobs start as without forks."))]
)
def test_a_training_and_a_table_of_jobs_that_start_by_themselves_have_the_same_bytes(finished, project, deleted):
    if deleted:
        project.own_workflow()
        shutil.rmtree(project.folder / "workflow" / "brainfed" / "forking")
    expected = contents(finished)
    made = [path for path in expected if path.endswith(("quick/repeat-0/predictions.parquet", "tables/methods.tsv"))]
    files = [project.folder / "results" / "tiny" / path for path in made]
    before = [file.stat().st_ino for file in files]
    named = [f"results/tiny/{path}" for path in made]
    project.snakemake("--cores", "2", "--force", *named, environment={} if deleted else BY_THEMSELVES)
    assert len(made) == 2 and not {*before} & {file.stat().st_ino for file in files}
    assert contents(project) == expected
    assert versions(project) == versions(finished)


@pytest.mark.full("Two whole runs take half a minute.")
def test_another_order_on_one_core_gives_the_same_bytes_where_jobs_start_by_themselves(finished, tmp_path):
    expected = contents(finished)
    kinds = {path.rsplit("/", 1)[-1] for path in expected}
    assert {"predictions.parquet", "history.parquet", "all.safetensors", "methods.tsv", "included.parquet"} <= kinds

    alone = new_project(tmp_path)
    (last,) = (path for path in expected if path.endswith("quick/repeat-0/predictions.parquet"))
    alone.snakemake(f"results/tiny/{last}", "--cores", "1", environment=BY_THEMSELVES)
    alone.snakemake("tables", "--cores", "1", environment=BY_THEMSELVES)

    found = contents(alone)
    assert found.keys() == expected.keys()
    assert [path for path in expected if found[path] != expected[path]] == []
    assert versions(alone) == versions(finished)
    assert any("torch" in known for known in versions(alone).values())
