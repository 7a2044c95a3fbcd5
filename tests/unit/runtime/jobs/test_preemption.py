"""A job that SLURM preempts asks for its return; one that is cancelled, or that Snakemake did not submit, does not."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from brainfed.runtime.jobs import _stopping as stopping
from brainfed.runtime.jobs._stopping import return_to_queue
from support.processes.awaited import HANGS_AFTER_S, until_it_sleeps

SHOWN = "JobId=7 JobState=RUNNING Requeue=1 {preempted} SuspendTime=None Comment={comment} Power="
AT_A_TIME, NEVER = "PreemptTime=2026-11-20T21:31:27", "PreemptEligibleTime=2026-11-20T21:31:23 PreemptTime=None"
OURS = "rule_train_method_wildcards_demo"


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The calls of a fake scontrol, one a line."""
    questions, former = tmp_path / "questions", signal.getsignal(signal.SIGTERM)
    program = tmp_path / "scontrol"
    program.write_text(f'#!/bin/sh\necho "$@" >> {questions}\n[ "$1" = show ] && cat {tmp_path}/shown || true\n')
    program.chmod(0o755)
    (tmp_path / "shown").write_text(SHOWN.format(preempted=AT_A_TIME, comment=OURS))
    questions.touch()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    yield questions
    signal.signal(signal.SIGTERM, former)


def test_a_preempted_job_goes_back_into_the_queue(asked, caplog):
    return_to_queue()
    assert asked.read_text().splitlines() == ["show job 7", "requeue 7"]
    assert caplog.messages == ["SLURM preempts job 7: it goes back into the queue"]


@pytest.mark.parametrize(("preempted", "comment"), [(NEVER, OURS), (AT_A_TIME, "(null)"), (AT_A_TIME, "mine")])
def test_a_cancelled_job_or_a_users_own_does_not_return(asked, preempted, comment):
    (asked.parent / "shown").write_text(SHOWN.format(preempted=preempted, comment=comment))
    return_to_queue()
    assert asked.read_text().splitlines() == ["show job 7"]


def test_outside_of_slurm_no_command_runs(asked, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID")
    return_to_queue()
    assert asked.read_text() == ""


@pytest.mark.parametrize(
    "program", ["exit 1", "echo 'slurm_load_jobs error: Unable to contact controller' >&2; exit 1"]
)
def test_a_slurm_that_does_not_answer_leaves_the_job_to_snakemake(asked, program, caplog):
    (asked.parent / "scontrol").write_text(f"#!/bin/sh\n{program}\n")
    with caplog.at_level("INFO"):
        return_to_queue()
    assert caplog.messages[0].startswith("scontrol show job 7: ")
    assert ("Unable to contact" in caplog.text) == ("Unable" in program)


def test_a_slow_slurm_is_waited_for_less_long_than_it_waits_before_it_kills(asked, monkeypatch):
    """Its two answers have one limit together."""
    assert stopping.PATIENCE + stopping.REQUEUE_PATIENCE < 30 - 2
    now, limits = [100.0], []

    def slow(command, timeout, **_):
        limits.append(timeout)
        now[0] += 7.0
        if len(limits) == 2:
            raise subprocess.TimeoutExpired(command, timeout)
        return SimpleNamespace(stdout=(asked.parent / "shown").read_text())

    monkeypatch.setattr(stopping, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(stopping.subprocess, "run", slow)
    return_to_queue()
    assert limits == [stopping.REQUEUE_PATIENCE, stopping.REQUEUE_PATIENCE - 7.0]


def test_the_request_is_made_before_it_ends_the_job(asked):
    (asked.parent / "scontrol").write_text(
        f"#!/bin/sh\nkill -TERM $PPID\nsleep 0.2\necho $1 >> {asked}\ncat {asked.parent}/shown\n"
    )
    body = "from brainfed.runtime.jobs._stopping import return_to_queue; return_to_queue(); print('ended')"
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert asked.read_text().split() == ["show", "requeue"]


WAITS = "sys.stdin.read()"
BEGUN = """
import ctypes
from brainfed.runtime.jobs import _stopping as stopping
stopping.PATIENCE = 0.3
with job(snakemake):
    print("begun", flush=True)
    """
HANGS = "mutex = ctypes.create_string_buffer(64); [ctypes.CDLL(None).pthread_mutex_lock(mutex) for _ in range(2)]"


@pytest.mark.parametrize("does", [WAITS, HANGS])
def test_a_stopped_job_returns_after_its_last_message(asked, scripts, does):
    scripts.environment["SLURM_JOB_ID"] = "7"
    with scripts.start(BEGUN + does) as running:
        assert running.stdout.readline() == "begun\n"
        until_it_sleeps(running.pid)
        running.send_signal(signal.SIGTERM)
        time.sleep(0.005)
        running.send_signal(signal.SIGTERM)
        _, errors = running.communicate(timeout=HANGS_AFTER_S)
    assert running.returncode == 130
    assert [line.split()[0] for line in errors.splitlines()] == ["stopped", "SLURM"]
    assert asked.read_text().splitlines() == ["show job 7", "requeue 7"]
