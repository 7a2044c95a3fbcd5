"""The workflow without `brainfed.sites`, without Flower and its cryptography: a run in one place needs none of them."""

import shutil
import subprocess
import sys

import pytest

from workflow.project import ALONE, new_project

pytestmark = pytest.mark.workflow

ABSENT = ("flwr", "cryptography")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project whose workflow lacks the package, and where Flower cannot be imported."""
    experiment = {"variants": ["ridge-central", "quick"], "reference": "ridge-central"}
    project = new_project(tmp_path_factory.mktemp("without-sites"), 24, experiments={"methods": experiment})
    project.own_workflow()
    shutil.rmtree(project.folder / "workflow" / "brainfed" / "sites")
    for name in ABSENT:
        (project.folder / "workflow" / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n")
    return project


def test_a_study_in_one_place_ends_in_its_report(project):
    project.snakemake("--cores", "2")
    scores = (project.folder / "results" / "tiny" / "tables" / "methods.tsv").read_text()
    assert {"ridge-central", "quick"} <= {line.split("\t")[0] for line in scores.splitlines()}
    assert (project.folder / "results" / "reports" / "tiny.html").stat().st_size > 100_000


def test_a_check_finds_nothing_that_stops_the_run(project):
    environment = ALONE | {"PYTHONPATH": str(project.folder / "workflow"), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-m", "brainfed", "check", "config.yaml"]
    checked = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
