"""GPUs are an offer: where there is none the same command runs on the CPU, and says so once."""

import json
import os

import pytest

from support.processes.fake_driver import FakeDriver
from workflow.project import new_project

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif("SLURM_JOB_ID" in os.environ, reason="inside a SLURM job its allocation counts"),
]

SENTENCE = "run on the CPU"


def run_methods(project, *arguments):
    """Train every method anew, on a machine whose GPUs are hidden."""
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    return project.snakemake("tables", "--cores", "2", *arguments, environment=hidden)


def test_without_a_gpu_the_offer_of_eight_is_answered_once(project):
    project.configure(seed=3)
    done = run_methods(project, "--resources", "gpu=8")
    assert (done.stdout + done.stderr).count(SENTENCE) == 1
    assert done.stderr.count("CUDA_VISIBLE_DEVICES='' hides the GPUs") == 1
    logs = sorted((project.folder / "logs" / "tiny" / "methods").rglob("*.log"))
    on_cpu = [log for log in logs if "hides the GPUs" in log.read_text()]
    assert {log.parent.name for log in on_cpu} == {"fedmlp", "quick"}
    timings = [json.loads(path.read_text()) for path in project.folder.glob("results/tiny/methods/**/timing.json")]
    assert {timing["device"] for timing in timings} == {"cpu"}


def test_without_the_offer_nothing_is_said(project):
    project.configure(variants={"quick": {"method": "fedgcn", "rounds": 1, "local_epochs": 1}})
    done = run_methods(project)
    assert SENTENCE not in done.stdout + done.stderr
    log = next((project.folder / "logs" / "tiny" / "methods").glob("*/quick/repeat-0.log"))
    assert "CPU: no GPU was asked for" in log.read_text()


def test_with_nothing_to_do_nothing_is_said(project):
    done = run_methods(project, "--resources", "gpu=8")
    assert "Nothing to be done" in done.stdout + done.stderr
    assert SENTENCE not in done.stdout + done.stderr


def test_how_many_jobs_share_a_gpu_reruns_nothing_and_must_be_a_number(project):
    shared = project.snakemake("-n", "tables", environment={"BRAINFED_JOBS_PER_GPU": "2"})
    assert "Nothing to be done" in shared.stdout + shared.stderr
    refused = project.snakemake("-n", "tables", environment={"BRAINFED_JOBS_PER_GPU": "two"}, check=False)
    assert refused.returncode == 1
    assert "BRAINFED_JOBS_PER_GPU: expected a whole number from 1, the jobs that may share a GPU, found 'two'" in (
        refused.stdout + refused.stderr
    )


def test_a_broken_driver_is_reported_before_any_job_starts(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    project = new_project(tmp_path / "project")
    driver = FakeDriver(tmp_path, ["GPU-aaaa-1"])
    driver.breaks("Failed to initialize NVML: Driver/library version mismatch", 18)
    participants = "results/tiny/cohort/participants.parquet"
    done = project.snakemake(participants, "--cores", "1", "--resources", "gpu=1", environment=driver.environment)
    before, first_job, _ = done.stderr.partition("Writing the participants")
    assert first_job, done.stderr
    assert "Jobs that use a GPU will fail: " in before
    assert "the NVIDIA driver is broken (exit code 18: Failed to initialize NVML: Driver/library version" in before
