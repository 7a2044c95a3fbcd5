"""Two clones share results, and a clock is ahead: one run at a time, and nothing that a job computed is lost."""

import os
import shutil
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from brainfed.configuration.layout import lock_files
from brainfed.runtime import hold
from workflow.project import Project

pytestmark = pytest.mark.workflow


def test_a_run_is_refused_while_another_clone_writes_its_results(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "clone")
    results = project.folder / "results"
    results.rename(tmp_path / "shared")
    results.symlink_to(tmp_path / "shared")
    with ExitStack() as other_clone:
        hold(other_clone, lock_files(tmp_path / "shared", ["tiny"], "another"))
        for words in (["-n"], ["--unlock"]):
            project.snakemake(*words, "tables")
        refused = project.snakemake("--cores", "1", "tables", check=False)
    assert refused.returncode == 1
    said = f"{tmp_path}/shared/tiny: expected no other run that writes these results, found one that runs (on "
    assert said in refused.stdout + refused.stderr
    assert project.snakemake("--cores", "1", "tables").returncode == 0


def test_a_job_whose_input_is_dated_ahead_is_kept(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "project")
    later = time.time() + 3600
    for path in (project.folder / "resources" / "series").iterdir():
        os.utime(path, (later, later))
    shard = next((project.folder / "results" / "tiny" / "timeseries").glob("*/shard-*.safetensors"))
    shard.unlink()
    target = str(shard.relative_to(project.folder))
    done = project.snakemake("--cores", "1", target)
    assert "files are dated after now, the first is resources/series/" in done.stderr
    assert shard.exists()
    assert "Nothing to be done" in project.snakemake("-n", target).stdout


def test_a_phenotype_table_that_is_dated_ahead_is_named_at_the_start(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "project")
    later = time.time() + 3600
    os.utime(project.folder / "resources" / "participants.csv", (later, later))
    done = project.snakemake("-n", "tables")
    assert "1 file is dated after now, the first is resources/participants.csv: expected a date up to" in done.stderr
    assert "Nothing to be done" in done.stdout


def test_a_copy_without_times_and_tables_is_judged_by_its_records(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "copy")
    shutil.rmtree(project.folder / ".snakemake")
    shutil.rmtree(project.folder / "results" / "tiny" / "tables")
    for path in (project.folder / "results").rglob("timing.json"):
        path.unlink()
    assert "train_method" not in project.planned()
    project.configure(variants={"quick": {"method": "fedgcn", "rounds": 3, "local_epochs": 2}})
    assert project.planned()["train_method"] == 1
