"""How Snakemake ends when it is asked to (SIGTERM), and when its terminal is closed (SIGHUP)."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

ECHO = 1.0
"""Seconds after a request in which a further one is the same: a cluster may signal twice."""


def end_when_asked() -> None:
    """Let Snakemake end at a second SIGTERM and at a SIGHUP as it does at Ctrl-C, with its jobs and its lock.

    The first SIGTERM has it wait for the jobs that run. Its own handler takes a lock in the thread that chooses jobs.
    That thread holds the lock while it chooses, so the handler would wait for it for ever: here it runs in a thread.
    SIGHUP ended Snakemake where it stood, and left the lock of the working folder behind.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    theirs = JobScheduler.exit_gracefully
    if theirs.__module__ != __name__:

        def in_a_thread(scheduler: JobScheduler, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
            asked = getattr(scheduler, "_asked", None)
            if asked is None:
                scheduler._asked = time.monotonic()
                threading.Thread(target=theirs, args=(scheduler,), daemon=True).start()
            elif time.monotonic() - asked > ECHO:
                _end_at_once(number, frame)

        JobScheduler.exit_gracefully = in_a_thread
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _end_at_once)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    """Pass a signal on to the jobs that run here, and end as at Ctrl-C."""
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for job in thread.read_text(encoding="ascii").split():
                os.kill(int(job), number)
    raise KeyboardInterrupt
