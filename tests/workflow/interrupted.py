"""Workflows that are killed: one of every stage at random times in random ways, and a training in one of its rounds."""

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.processes.awaited import until_true
from workflow.project import ALONE, SIMULATE, Project, new_project

SHORT = {"rounds": 30, "local_epochs": 3}
SETTINGS = {
    "cohorts": {
        "tiny": {
            "source": "simulate",
            "atlas": "twenty",
            "shards": 2,
            "simulate": SIMULATE,
        }
    },
    "inpainting": SHORT,
    "variants": {
        "whole": {"method": "fedni", **SHORT},
        "sage": {"method": "fedsage-plus", **SHORT, "inpainting": SHORT},
    },
    "experiments": {
        "methods": {"variants": ["ridge-central", "whole", "sage"], "reference": "ridge-central"},
    },
}
COST_SECTION = re.compile(rb'<section id="cost">.*?</section>', re.DOTALL)
HELD = """
import time
from pathlib import Path

from brainfed.federation import _link


def due(pace):
    pace.asked = getattr(pace, "asked", 0) + 1
    if pace.asked == {number}:
        Path({marker!r}).touch()
        end = time.monotonic() + 3600
        while not _link.stop_asked() and time.monotonic() < end:
            time.sleep(0.01)
    return True


_link.Pace.due = due
"""
"""A `sitecustomize` with which a training keeps every round and waits after one that is not kept yet."""
# For a round to end, and for what a run does beside a job that was killed, on a machine that does much else.
PATIENCE, WHOLE_RUN = 600.0, 3600.0


@dataclass(frozen=True)
class Process:
    """A process of a session, from /proc."""

    pid: int
    session: int
    command: str


def processes_of(session: int, folder: Path) -> list[Process]:
    """Everything alive that the session started, or that works in the folder; the dead that nobody buried are not."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, leader = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            within = (entry / "cwd").readlink().is_relative_to(folder)
        except OSError:
            continue
        if state != "Z" and (int(leader) == session or within):
            found.append(Process(int(entry.name), int(leader), command))
    return found


def jobs_of(session: int, folder: Path) -> list[int]:
    """The processes that run a rule's script."""
    return [process.pid for process in processes_of(session, folder) if "/.snakemake/scripts/" in process.command]


@dataclass
class Interrupted:
    """A project whose runs are killed.

    Attributes:
        project: the project.
        random: draws times and ways.
        span: longest time to a kill, seconds.
        cores: of the workflow.
        kills: how often each way was taken.
    """

    project: Project
    random: random.Random
    span: float
    cores: int
    kills: Counter[str] = field(default_factory=Counter)

    def kill_once(self) -> bool:
        """Run the workflow until it is killed, and see that nothing of it lives on; False where it ended before."""
        with self._start() as running:
            deadline = time.monotonic() + self.random.uniform(0.5, self.span)
            drawn = self.random.choice(sorted(WAYS))
            while time.monotonic() < deadline and running.poll() is None:
                time.sleep(0.02)
            ended = running.poll() is not None
            if not ended:
                jobs = jobs_of(running.pid, self.project.folder)
                way = drawn if jobs or not drawn.endswith("a job") else "SIGKILL to everything"
                self.kills[way] += WAYS[way](running, jobs, self.random)
                if way.endswith("a job"):
                    # As a person who saw it fail; the workflow would go on with all that does not need that job.
                    time.sleep(1.0)
                    running.terminate()
            self._wait_for_the_end(running)
        assert not ended or running.returncode == 0, f"failed without being killed; see {self.project.folder}/run.log"
        self._wait_for_the_last(running.pid)
        if any((self.project.folder / ".snakemake" / "locks").glob("*")):
            self.project.snakemake("--unlock", "--cores", "1")
        return not ended

    @staticmethod
    def _wait_for_the_end(running: "subprocess.Popen[bytes]") -> None:
        try:
            running.wait(timeout=WHOLE_RUN)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise

    def _start(self) -> "subprocess.Popen[bytes]":
        with (self.project.folder / "run.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--cores", str(self.cores), "--configfile", "config.yaml"],
                cwd=self.project.folder,
                env=os.environ | environment(self.project),
                start_new_session=True,
                stdout=log,
                stderr=log,
            )

    def _wait_for_the_last(self, session: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while left := processes_of(session, self.project.folder):
            if time.monotonic() > deadline:
                for process in left:
                    with suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)
                raise AssertionError(f"alive {PATIENCE:.0f} s after a kill: {left}")
            time.sleep(0.1)


def environment(project: Project) -> dict[str, str]:
    """What a run of the project needs: its own copy of the package, its own locks, no GPU."""
    return ALONE | {
        "PYTHONPATH": str(project.folder / "workflow"),
        "CUDA_VISIBLE_DEVICES": "",
        "TMPDIR": str(temporary_files(project)),
    }


def temporary_files(project: Project) -> Path:
    """Where its runs keep what is to be gone when they end."""
    folder = project.folder.with_name(f"{project.folder.name}-temporary")
    folder.mkdir(exist_ok=True)
    return folder


def _signalled(send: Callable[[int, int], None], pid: int, number: signal.Signals) -> bool:
    try:
        send(pid, number)
    except ProcessLookupError:
        return False
    return True


WAYS: dict[str, Callable[["subprocess.Popen[bytes]", list[int], random.Random], bool]] = {
    "SIGKILL to everything": lambda running, jobs, draw: _signalled(os.killpg, running.pid, signal.SIGKILL),
    "SIGTERM to everything": lambda running, jobs, draw: _signalled(os.killpg, running.pid, signal.SIGTERM),
    "SIGINT to everything": lambda running, jobs, draw: _signalled(os.killpg, running.pid, signal.SIGINT),
    "SIGKILL to the workflow alone": lambda running, jobs, draw: _signalled(os.kill, running.pid, signal.SIGKILL),
    "SIGKILL to a job": lambda running, jobs, draw: _signalled(os.kill, draw.choice(jobs), signal.SIGKILL),
    "SIGTERM to a job": lambda running, jobs, draw: _signalled(os.kill, draw.choice(jobs), signal.SIGTERM),
}


def end_in_round(project: Project, round: int, number: signal.Signals, *targets: str) -> None:
    """Run the workflow and signal it and all its jobs when the first `round` of a training is done and not yet kept."""
    held, marker = project.folder / "held", project.folder / "held" / "waits"
    held.mkdir()
    (held / "sitecustomize.py").write_text(HELD.format(number=round, marker=str(marker)))
    path = os.pathsep.join([str(held), str(project.folder / "workflow")])
    with subprocess.Popen(
        [sys.executable, "-m", "snakemake", *targets, "--cores", "1", "--configfile", "config.yaml"],
        cwd=project.folder, env=os.environ | {"PYTHONPATH": path}, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as running:  # fmt: skip
        try:
            until_true(lambda: marker.exists() or running.poll() is not None)
            assert running.poll() is None, f"the workflow ended before round {round}"
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            raise
        os.killpg(running.pid, number)


def whole_project(folder: Path) -> Project:
    """The project before its first run."""
    return new_project(folder, subjects=0, **SETTINGS)


def finish(project: Project, cores: int) -> float:
    """Run the workflow to its end; seconds."""
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", str(cores), "--configfile", "config.yaml"],
        cwd=project.folder,
        env=os.environ | environment(project),
        text=True,
        capture_output=True,
        timeout=WHOLE_RUN,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return time.monotonic() - start


def results_of(project: Project) -> dict[str, bytes]:
    """Path -> bytes of all results but seconds, peaks of memory and the records of times, which no two runs share."""
    root = project.folder / "results"
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {
        path.relative_to(root).as_posix(): COST_SECTION.sub(b"", path.read_bytes())
        for path in files
        if not path.name.endswith(("timing.json", ".made")) and "benchmarks" not in path.parts
    }


def left_over(project: Project) -> list[str]:
    """What a killed job may leave and a finished workflow may not: files half-written, temporary, states, markers.

    Snakemake itself, killed outright, leaves an empty temporary folder.
    """
    files = [path for path in project.folder.rglob("*") if path.is_file() and "workflow" not in path.parts]
    names = [path for path in files if path.name.endswith(".part") or ".checkpoint" in path.name]
    markers = [path for path in files if ".snakemake/incomplete" in path.as_posix()]
    temporary = [path for path in temporary_files(project).rglob("*") if path.is_file()]
    return [str(path.relative_to(project.folder.parent)) for path in [*names, *markers, *temporary]]
