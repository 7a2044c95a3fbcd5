"""The smallest study, `.test`, as CI and contributors run it: from the root of the repository."""

import json
import shutil
from pathlib import Path

import pytest

from support.processes.forked_cli import ForkedCommands
from workflow.project import ALONE, REPOSITORY

pytestmark = pytest.mark.workflow


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A folder that has nothing but the study's config."""
    shutil.copytree(REPOSITORY / ".test" / "config", tmp_path / ".test" / "config")
    return tmp_path / ".test"


def snakemake(study: Path, *words: str) -> str:
    """What a command says that ends well."""
    environment = ALONE | {"PYTHONPATH": str(REPOSITORY / "workflow")}
    command = ["snakemake", "--directory", str(study), *words]
    done = ForkedCommands().run_apart(command, REPOSITORY, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_it_is_planned_from_scans_to_the_report(study: Path) -> None:
    said = snakemake(study, "-n", "--quiet", "rules")
    steps = ("simulate_participants", "extract_series", "compute_connectivity", "build_graph", "train_generator")
    assert [step for step in (*steps, "train_method", "score_experiment", "write_report") if step not in said] == []
    assert {path.name for path in study.iterdir()} <= {"config", ".snakemake"}


@pytest.mark.full("A whole run, with all figures of its report, takes most of a minute.")
def test_it_runs_and_is_reported_by_snakemake_too(study: Path) -> None:
    snakemake(study, "--cores", "2")
    assert (study / "results" / "reports" / "test.html").is_file()
    contents = json.loads((study / ".snakemake" / "brainfed-contents.json").read_text())
    assert len(contents) > 100, "no start reads all results of a first run again"
    assert "Nothing to be done" in snakemake(study, "-n")
    snakemake(study, "--report", "report.zip")
    assert (study / "report.zip").is_file()
