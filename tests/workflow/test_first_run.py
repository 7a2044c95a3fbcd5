"""The tutorial of the first run lists the jobs that a dry run lists."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from workflow.project import ALONE, REPOSITORY, copy_workflow

pytestmark = pytest.mark.workflow

TUTORIAL = (REPOSITORY / "docs" / "tutorial" / "first-run.md").read_text(encoding="utf-8")
STATISTICS = re.compile(r"^job +count\n-+ +-+\n(.*?^total +\d+$)", re.MULTILINE | re.DOTALL)


def jobs_of(table: str) -> dict[str, int]:
    """Rule -> number of jobs."""
    return {rule: int(count) for rule, count in (line.split() for line in table.splitlines())}


def test_the_jobs_of_the_default_config_are_those_of_the_tutorial(tmp_path):
    copy_workflow(tmp_path)
    shutil.copytree(REPOSITORY / "config", tmp_path / "config")
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "rules"]
    environment = ALONE | {"PYTHONPATH": str(tmp_path / "workflow")}
    done = subprocess.run(
        command, cwd=tmp_path, env=os.environ | environment, text=True, capture_output=True, check=False
    )
    found = STATISTICS.search(done.stdout + done.stderr)
    assert found, done.stdout + done.stderr
    assert jobs_of(STATISTICS.findall(TUTORIAL)[0]) == jobs_of(found[1]), "update docs/tutorial/first-run.md"


def test_a_changed_graph_runs_no_job_that_the_first_run_does_not_have():
    first, changed = (jobs_of(table) for table in STATISTICS.findall(TUTORIAL))
    assert all(count <= first[rule] for rule, count in changed.items())
    assert sum(count for rule, count in changed.items() if rule != "total") == changed["total"]
    assert changed["build_graph"] == first["build_graph"]
    for number in (first["total"], first["train_method"], changed["total"], changed["train_method"]):
        assert re.search(rf"\b{number}\b", re.sub(r"```.*?```", "", TUTORIAL, flags=re.DOTALL)), number
