"""Snakemake ends when it is asked to, whatever it does at that moment."""

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.processes.awaited import HANGS_AFTER_S

pytestmark = pytest.mark.workflow

RULES = Path(__file__).resolve().parents[2] / "workflow" / "rules"
SNAKEFILE = f"""
import os, signal, time
from snakemake.scheduling.job_scheduler import JobScheduler

choose, asked = JobScheduler.job_selector, []

def asked_meanwhile(self, *arguments):
    with self._lock:
        if not asked:
            asked.append(True)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.1)
    return choose(self, *arguments)

JobScheduler.job_selector = asked_meanwhile

include: "{RULES}/shell.smk"

rule first:
    output: "first"
    script: "touch.py"

rule second:
    input: "first"
    output: "second"
    script: "touch.py"
"""


def test_a_request_to_end_while_jobs_are_chosen_is_heard(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "touch.py").write_text("from pathlib import Path\nPath(snakemake.output[0]).touch()\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "second"]
    done = subprocess.run(command, cwd=tmp_path, timeout=HANGS_AFTER_S, text=True, capture_output=True, check=False)
    assert done.returncode != 0, done.stderr
    assert "Will exit after finishing currently running jobs" in done.stderr
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "second").exists()


HANGS = """
import ctypes
from pathlib import Path
from brainfed.runtime.jobs import _stopping as stopping
from brainfed.scripting import job

stopping.PATIENCE = 0.5
with job(snakemake):
    Path("running").touch()
    library, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""
ONE_JOB = f"""
from brainfed.runtime import _borrowed

_borrowed.ECHO = 0.0

include: "{RULES}/shell.smk"

rule hang:
    output: "never"
    resources: shell_exec=JOB_SHELL
    script: "hang.py"
"""


def hanging(folder: Path, limit: int = resource.RLIM_INFINITY, **streams: int) -> "subprocess.Popen[bytes]":
    """A workflow whose job does not return from compiled code, once it runs."""
    (folder / "Snakefile").write_text(ONE_JOB)
    (folder / "hang.py").write_text(HANGS)

    # With forks of its own: those of the whole test run would have this limit, too.
    workflow = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1"],
        cwd=folder,
        env=os.environ | {"BRAINFED_FORKS": ""},
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        **streams,
    )
    deadline = time.monotonic() + HANGS_AFTER_S
    while not (folder / "running").exists():
        assert time.monotonic() < deadline and workflow.poll() is None
        time.sleep(0.05)
    return workflow


def is_unlocked(folder: Path) -> bool:
    return not list((folder / ".snakemake" / "locks").glob("*"))


AGAIN = pytest.mark.full("Four workflows hang for seconds; one of each pair stands for both.")


@pytest.mark.parametrize("limit", [resource.RLIM_INFINITY, pytest.param(1500 << 20, marks=AGAIN)])
def test_a_second_request_ends_a_job_that_hangs(tmp_path: Path, limit: int) -> None:
    with (tmp_path / "log").open("wb") as log:
        workflow = hanging(tmp_path, limit, stdout=log.fileno(), stderr=log.fileno())
    workflow.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + HANGS_AFTER_S
    while "Will exit after finishing" not in (tmp_path / "log").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert workflow.poll() is None and not is_unlocked(tmp_path)
    workflow.send_signal(signal.SIGTERM)
    assert workflow.wait(timeout=HANGS_AFTER_S) != 0
    assert "stopped by SIGTERM before the end" in (tmp_path / "log").read_text()
    assert is_unlocked(tmp_path)


@pytest.mark.parametrize("closed", [True, pytest.param(False, marks=AGAIN)])
def test_a_closed_terminal_ends_the_run_and_leaves_no_lock(tmp_path: Path, closed: bool) -> None:
    """Snakemake alone may hear of it, or all processes; nothing can be printed any more."""
    outer, inner = pty.openpty()
    workflow = hanging(tmp_path, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    if closed:
        os.close(outer)
        os.killpg(workflow.pid, signal.SIGHUP)
    else:
        workflow.send_signal(signal.SIGHUP)
    assert workflow.wait(timeout=HANGS_AFTER_S) != 0
    assert is_unlocked(tmp_path)
    assert not (tmp_path / "never").exists()
    if not closed:
        os.close(outer)
