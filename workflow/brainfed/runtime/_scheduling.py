"""How Snakemake looks for jobs and ends, locks on results, and files dated after now."""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Timer
from time import monotonic
from types import FrameType
from typing import Any

from brainfed.runtime._disk import folder_lock
from brainfed.runtime.records import GIVEN


def keep_one_timer() -> None:
    """Let Snakemake's scheduler have one timer at a time.

    It looks for jobs when one has ended, and again after the time span of its limit on jobs, which is a second. Each
    look starts a timer, and that timer causes the next look. So every job that ends would add a chain of timers: after
    150 jobs Snakemake would look, and start a thread, 150 times a second. The process would wait for the last of them.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    theirs = getattr(JobScheduler, "_schedule_reevalutation", None)
    if theirs is not None and theirs.__module__ != __name__:
        JobScheduler._schedule_reevalutation = _look_again


def _look_again(scheduler: Any, delay: float) -> None:
    """Have the scheduler look again so many seconds from now; called by its own thread alone."""
    scheduler._look_at = monotonic() + delay
    if not getattr(scheduler, "_timer_runs", False):
        _start(scheduler, delay)


def _start(scheduler: Any, delay: float) -> None:
    scheduler._timer_runs = True
    timer = Timer(delay, _ended, (scheduler,))
    timer.daemon = True
    timer.start()


def _ended(scheduler: Any) -> None:
    """At a timer's end, let the scheduler look, and start the timer of a later request."""
    left = scheduler._look_at - monotonic()
    if left > 0:
        _start(scheduler, left)
    else:
        scheduler._timer_runs = False
    scheduler._open_jobs.release()


# How Snakemake ends when it is asked to (SIGTERM), and when its terminal is closed (SIGHUP).

ECHO = 1.0
"""Seconds after a request in which a further one is the same: a cluster may signal twice."""


def end_when_asked() -> None:
    """Let Snakemake end at a second SIGTERM and at a SIGHUP as it does at Ctrl-C, with its jobs and its lock.

    The first SIGTERM has it wait for the jobs that run. Its own handler takes a lock in the thread that chooses jobs.
    That thread holds the lock while it chooses, so the handler would wait for it for ever: here it runs in a thread.
    Snakemake sets it before it calls `onstart`, where this is called again. SIGHUP ended Snakemake where it stood, and
    left the lock of the working folder behind.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    theirs = signal.getsignal(signal.SIGTERM)
    if callable(theirs) and not isinstance(theirs, _Asked):
        signal.signal(signal.SIGTERM, _Asked(theirs))
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _end_at_once)


class _Asked:
    """A handler that runs another one in a thread at the first request, and ends the process at a later one."""

    def __init__(self, first: Callable[[int, FrameType | None], Any]) -> None:
        self.first = first
        self.at: float | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.at is None:
            self.at = time.monotonic()
            threading.Thread(target=self.first, args=(number, frame), daemon=True).start()
        elif time.monotonic() - self.at > ECHO:
            _end_at_once(number, frame)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    """Pass a signal on to the jobs that run here, and end as at Ctrl-C."""
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for job in thread.read_text(encoding="ascii").split():
                os.kill(int(job), number)
    raise KeyboardInterrupt


# One run at a time writes a folder of results, from whichever clone it was started.

_locked = set[Path]()


def run_alone(locks: Iterable[Path]) -> None:
    """Hold these locks until this process ends; those that it holds already stay.

    Snakemake's own lock lies in `.snakemake` of the folder where it was started, so it does not see another clone that
    writes the same results.

    Raises:
        UserError: another run holds one of them.
    """
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    paths = {lock.parent.resolve() / lock.name for lock in locks} - _locked
    hold(until_the_end, paths)
    _locked.update(paths)


def hold(stack: ExitStack, locks: Iterable[Path]) -> None:
    """Hold these locks as long as `stack` is open.

    Raises:
        UserError: another run holds one of them.
    """
    # All runs ask in one order, so one of two that begin together has all.
    for lock in sorted({lock.parent.resolve() / lock.name for lock in locks}):
        stack.enter_context(
            folder_lock(
                lock, "run that writes these results", "wait until it ends, or give this folder results of its own"
            )
        )


# Files that are dated after now are no reason to lose what a job has computed.

_ours = list[Mapping[str, Any]]()
"""Names in the rule files of each of our workflows, of which a host may import several."""


def keep_whatever_the_dates(rules: Mapping[str, Any]) -> None:
    """Let Snakemake keep outputs that are older than an input: it would delete them at every start anew.

    Our records compare contents.

    Args:
        rules: all names in the rule files of the workflow; jobs of other rules are judged by Snakemake.
    """
    from snakemake.dag import DAG

    _ours.append(rules)
    theirs = DAG.check_output_mtime
    if theirs.__module__ == __name__:
        return

    async def check_output_mtime(dag: Any, job: Any, outputs: Any) -> None:
        own = any(job.rule.module_globals is rules for rules in _ours)
        if not own or GIVEN not in dict(job.params.items()):
            await theirs(dag, job, outputs)

    DAG.check_output_mtime = check_output_mtime
