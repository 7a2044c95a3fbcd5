"""One SLURM for the tests of this folder, and what happened on it while a project and GPU jobs ran there.

The project runs through the workflow's own profile. One of its jobs is cancelled, another is preempted, and the node of
a third crashes. The same project runs on the local machine meanwhile. Nothing waits for a clock: each step waits for
what must have happened.
"""

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from slurm.cluster import Cluster, end, unavailable, wait_until
from workflow.project import CONFIG, REPOSITORY, Project, new_project

PROFILE = ("--workflow-profile", "workflow/profiles/slurm", "--max-status-checks-per-second", "10")
PROFILE += ("--slurm-init-seconds-before-status-checks", "1")
TARGETS = ("results/tiny/cohort/included.parquet", "results/tiny/tables/methods.tsv")
MODEL = ("--set-resources", "hold_gpu:gpu_model=fake")
ROUNDS = 3000
SMALLEST = {
    "cohorts": {"tiny": CONFIG["cohorts"]["tiny"] | {"shards": 1}},
    "variants": {"long": {"method": "fedmlp", "rounds": ROUNDS, "local_epochs": 1}},
    "experiments": {"methods": {"variants": ["long"], "reference": "long"}},
}
"""Each job on SLURM starts three Pythons with Snakemake, so there are few."""


@dataclass(frozen=True)
class Submission:
    """A job as SLURM remembers it.

    Attributes:
        comment: the rule and its wildcards.
        state: COMPLETED, CANCELLED ...
        restarts: how often SLURM started it anew.
        time_limit: hours:minutes:seconds.
        memory: MiB, as SLURM writes it.
        gpus: number and model, as SLURM writes them; empty without any.
    """

    comment: str
    state: str
    restarts: int
    time_limit: str
    memory: str
    gpus: str


@dataclass(frozen=True)
class Story:
    """What happened.

    Attributes:
        on_slurm: the project that ran on SLURM.
        locally: the same project after a local run.
        held: what each GPU job says of itself.
        submissions: all jobs that SLURM got.
        cancelled: the comment of the job that was cancelled.
        crashed: the comments of the jobs that ran when their node crashed.
        terminal: what the project's snakemake on SLURM said.
    """

    on_slurm: Project
    locally: Project
    held: tuple[dict[str, object], ...]
    submissions: tuple[Submission, ...]
    cancelled: str
    crashed: tuple[str, ...]
    terminal: str


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A running SLURM; the tests are skipped where none can be started."""
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    started = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        started.start()
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="session")
def story(cluster, tmp_path_factory) -> Story:
    """The GPU jobs, the project on SLURM, with a cancelled job and a crash of the node, and the project locally."""
    on_slurm = new_project(tmp_path_factory.mktemp("on-slurm"), **SMALLEST)
    on_slurm.edit("brainfed/federation/_link.py", "CHECKPOINT_SECONDS = 20", "CHECKPOINT_SECONDS = 0")
    locally = on_slurm.copy(tmp_path_factory.mktemp("locally"))
    folder = tmp_path_factory.mktemp("gpus")
    (folder / "workflow").symlink_to(REPOSITORY / "workflow")
    jobs = Path(__file__).parent / "gpus.smk"

    def project_jobs():
        return {number: comment for number, comment in cluster.running().items() if "hold_gpu" not in comment}

    def running(rule):
        return [(number, comment) for number, comment in project_jobs().items() if rule in comment]

    with ExitStack() as held:
        gpus = held.enter_context(Snakemake(folder, "--snakefile", str(jobs), *PROFILE, *MODEL))
        options = (*TARGETS, "--configfile", "config.yaml", "--cores", "2")
        far = held.enter_context(Snakemake(on_slurm.folder, *options, *PROFILE, "--resources", "gpu=0"))
        near = held.enter_context(Snakemake(locally.folder, *options))

        ((number, cancelled), *_) = wait_until(lambda: running("compute_connectivity"), "a job to cancel", 600)
        cluster.ask("scancel", number)
        gpus.succeeds()
        wait_until(lambda: trains_alone(on_slurm.folder / "results", project_jobs()), "a training alone", 600)
        cluster.preempt()
        crashed = wait_until(lambda: running("score_experiment"), "a job to crash", 600)
        cluster.crash_node()
        cluster.start_node()
        far.succeeds()
        near.succeeds()

    shown = cluster.ask("scontrol", "show", "job", "--oneliner").splitlines()
    return Story(
        on_slurm=on_slurm,
        locally=locally,
        held=tuple(json.loads(path.read_text()) for path in sorted((folder / "held").glob("*.json"))),
        submissions=tuple(submission(line) for line in shown),
        cancelled=cancelled,
        crashed=tuple(comment for _, comment in crashed),
        terminal=far.said(),
    )


def trains_alone(results: Path, running: dict[str, str]) -> bool:
    """Whether a method has kept a round, and no other job runs."""
    others = [comment for comment in running.values() if not comment.startswith("rule_train_method")]
    return bool(running) and not others and any(results.rglob(".predictions*.checkpoint"))


def submission(line: str) -> Submission:
    """A line of `scontrol show job`."""
    said = dict(word.split("=", 1) for word in line.split() if "=" in word)
    allocated = dict(part.split("=", 1) for part in said["TRES"].split(","))
    return Submission(
        comment=said["Comment"],
        state=said["JobState"],
        restarts=int(said["Restarts"]),
        time_limit=said["TimeLimit"],
        memory=allocated["mem"],
        gpus=said.get("TresPerJob", ""),
    )


class Snakemake:
    """A snakemake in the background; it ends, with all that it started, at the end of the `with`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.command = [sys.executable, str(Path(__file__).parent / "impatient.py"), *arguments]
        self.folder = folder

    def __enter__(self) -> "Snakemake":
        own = {"PYTHONPATH": str(self.folder / "workflow"), "PYTHONDONTWRITEBYTECODE": "1"}
        self.log = (self.folder / "terminal").open("w+")
        self.process = psutil.Popen(
            self.command, cwd=self.folder, env=os.environ | own, stdout=self.log, stderr=subprocess.STDOUT
        )
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.poll() is None:
            end([self.process, *self.process.children(recursive=True)], psutil.Process.kill)
        self.log.close()

    def succeeds(self) -> None:
        """Wait for its end, which must be a good one."""
        assert self.process.wait(timeout=1200) == 0, self.said()

    def said(self) -> str:
        """Everything on its terminal so far."""
        return Path(self.log.name).read_text()
