"""A generator's training that is stopped, or killed outright, goes on from its last round, to the same bytes."""

import os
import signal
import subprocess
import sys
import time

import pytest

from brainfed.runtime import UserError, read_arrays
from workflow.project import new_project

pytestmark = [
    pytest.mark.full("Every generator is trained twice; that of a unit test is stopped in every round."),
    pytest.mark.workflow,
]

KILLED_IN = 17
GENERATOR = ("tables", "--cores", "1", "--until", "train_generator")
SETTINGS = {
    "inpainting": {"rounds": 30, "local_epochs": 3},
    "variants": {"whole": {"method": "fedni", "rounds": 1, "local_epochs": 1}},
    "experiments": {"methods": {"variants": ["ridge-central", "whole"], "reference": "ridge-central"}},
}


def rounds_done(folder):
    """Rounds that the newest checkpoint below a folder holds; 0 without one."""
    for path in folder.rglob(".generator.safetensors.*.checkpoint"):
        try:
            return int(read_arrays(path, []).metadata["round"]) + 1
        except UserError:
            continue
    return 0


def run_until(project, number):
    """Start the workflow and signal it and all its jobs while round `KILLED_IN` runs; rounds that were kept."""
    results = project.folder / "results"
    command = [sys.executable, "-m", "snakemake", *GENERATOR, "--configfile", "config.yaml"]
    environment = os.environ | {"PYTHONPATH": str(project.folder / "workflow")}
    with subprocess.Popen(
        command, cwd=project.folder, env=environment, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as running:  # fmt: skip
        while running.poll() is None and rounds_done(results) < KILLED_IN - 1:
            time.sleep(0.02)
        assert running.poll() is None, "the workflow ended before it could be killed"
        os.killpg(running.pid, number)
    return rounds_done(results)


def made_by_inpainting(project):
    results = project.folder / "results" / "tiny"
    files = (path for path in results.glob("inpainting/**/*") if path.is_file())
    made = (path for path in files if not path.name.endswith(("timing.json", ".made")))
    return {path.relative_to(results): path.read_bytes() for path in made}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Path -> bytes of an undisturbed training."""
    whole = new_project(tmp_path_factory.mktemp("whole"), **SETTINGS)
    whole.snakemake(*GENERATOR)
    return made_by_inpainting(whole)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_round_17_it_resumes_to_the_same_bytes(expected, number, tmp_path):
    ended = new_project(tmp_path, **SETTINGS)
    kept = run_until(ended, number)
    assert KILLED_IN - 1 <= kept < 30
    assert not list(ended.folder.glob("results/tiny/inpainting/*/repeat-0/all/generator.safetensors"))
    (log,) = ended.folder.glob("logs/tiny/inpainting/*/repeat-0/all.log")
    assert ("stopped by SIGTERM" in log.read_text()) == (number == signal.SIGTERM)

    if number == signal.SIGKILL:
        ended.snakemake("--unlock")
    ended.snakemake(*GENERATOR)
    assert f"goes on after round {kept} of 30, which" in log.read_text()
    found = made_by_inpainting(ended)
    assert found.keys() == expected.keys() and len(expected) == 3
    assert [path for path in expected if found[path] != expected[path]] == []
    assert not list((ended.folder / "results").rglob("*.checkpoint"))
