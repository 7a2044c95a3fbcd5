"""The workflow on a real SLURM: GPUs, results, a cancelled job, a crashed node and a preemption."""

import re
from itertools import combinations

import pytest

from slurm.conftest import ROUNDS

pytestmark = [
    pytest.mark.full("A SLURM of its own takes minutes for a project."),
    pytest.mark.slurm,
    pytest.mark.workflow,
]


def overlap(one, other):
    return one["begun"] < other["ended"] and other["begun"] < one["ended"]


def test_gpu_jobs_hold_what_slurm_gave_them_and_say_so(story):
    assert len(story.held) == 3
    assert {tuple(job["devices"]) for job in story.held} == {("0",), ("1",)}
    assert {job["message"] for job in story.held} == {"GPU 0 as SLURM allocated", "GPU 1 as SLURM allocated"}
    asked = {job.comment.startswith("rule_hold_gpu"): job.gpus for job in story.submissions}
    assert asked == {True: "gres:gpu:fake:1", False: ""}


def test_jobs_at_the_same_time_hold_different_gpus_and_are_never_more_than_two(story):
    together = [pair for pair in combinations(story.held, 2) if overlap(*pair)]
    assert together
    assert all(one["devices"] != other["devices"] for one, other in together)
    assert not [
        three for three in combinations(story.held, 3) if all(overlap(*pair) for pair in combinations(three, 2))
    ]


def contents(project):
    """Path -> bytes of all results but measurements."""
    results = project.folder / "results"
    files = (path for path in results.rglob("*") if path.is_file())
    kept = (
        path for path in files if "benchmarks" not in path.parts and not path.name.endswith(("timing.json", ".made"))
    )
    return {path.relative_to(results).as_posix(): path.read_bytes() for path in kept}


def test_the_results_are_those_of_the_local_run_byte_for_byte(story):
    expected, found = contents(story.locally), contents(story.on_slurm)
    assert {"tiny/tables/methods.tsv", "tiny/cohort/included.parquet"} <= expected.keys()
    assert found.keys() == expected.keys()
    assert [path for path in expected if found[path] != expected[path]] == []


def test_a_run_without_gpus_trains_on_the_cpu_of_a_node_that_has_some(story):
    logs = sorted((story.on_slurm.folder / "logs" / "tiny" / "methods").rglob("*.log"))
    assert len(logs) == 1
    assert all("CPU: no GPU was asked for" in log.read_text() for log in logs)


def test_a_cancelled_job_is_submitted_again_with_twice_the_memory_and_time(story):
    tries = [job for job in story.submissions if job.comment == story.cancelled]
    assert [job.state for job in tries] == ["CANCELLED", "COMPLETED"]
    assert [job.memory for job in tries] == ["3000M", "6000M"]
    assert [job.time_limit for job in tries] == ["01:00:00", "02:00:00"]
    assert "Trying to restart job" in story.terminal


def test_slurm_starts_the_jobs_of_a_crashed_node_anew(story):
    again = [job for job in story.submissions if job.restarts]
    assert story.crashed
    assert {job.comment for job in again} >= set(story.crashed)
    assert {job.state for job in again} == {"COMPLETED"}


def test_a_preempted_training_goes_back_into_the_queue_and_on_from_its_last_round(story):
    (job,) = [job for job in story.submissions if job.comment.startswith("rule_train_method")]
    assert (job.state, job.restarts) == ("COMPLETED", 1)
    assert [other.state for other in story.submissions if other.comment == "urgent"] == ["COMPLETED"]
    (log,) = (story.on_slurm.folder / "logs" / "tiny" / "methods").rglob("*.log")
    assert re.search(rf"goes on after round \d+ of {ROUNDS}, which an earlier run kept", log.read_text())


def test_short_jobs_go_to_slurm_in_groups(story):
    comments = {job.comment for job in story.submissions}
    short = "rule_cohort_include_subjects_ingest_columns_measure_scans_split_subjects"
    assert [comment for comment in comments if comment.startswith(short)]
    assert not [comment for comment in comments if comment.startswith(("rule_ingest", "rule_split"))]


def test_logs_of_failed_attempts_lie_where_the_readme_says(story):
    logs = [path.relative_to(story.on_slurm.folder) for path in story.on_slurm.folder.glob("logs/slurm/**/*.log")]
    assert [log.parts[2] for log in logs] == ["rule_compute_connectivity"]
