"""How a run ends when it is asked to, and how it has its results for itself."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any

from brainfed.runtime._borrowed import borrowed
from brainfed.runtime._disk import folder_lock
from brainfed.runtime._errors import UserError

# How Snakemake ends when it is asked to (SIGTERM), and when its terminal is closed (SIGHUP).

ECHO = 1.0
"""Seconds after a request in which a further one is the same: a cluster may signal twice."""


@cache
def end_when_asked() -> None:
    """Let Snakemake end at a second SIGTERM and at a SIGHUP as it does at Ctrl-C, with its jobs and its lock.

    The first SIGTERM has it wait for the jobs that run. Its own handler takes a lock in the thread that chooses jobs.
    That thread holds the lock while it chooses, so the handler would wait for it for ever: here it runs in a thread.
    SIGHUP ended Snakemake where it stood, and left the lock of the working folder behind.
    """
    scheduler = borrowed(
        "snakemake.scheduling.job_scheduler:JobScheduler.exit_gracefully",
        ("self", "args"),
        "a second SIGTERM does not end a job that hangs",
    )
    if scheduler is not None:
        theirs = scheduler.exit_gracefully

        @wraps(theirs)
        def in_a_thread(self: Any, number: int = signal.SIGTERM, frame: FrameType | None = None) -> None:
            asked = getattr(self, "_asked", None)
            if asked is None:
                self._asked = time.monotonic()
                threading.Thread(target=theirs, args=(self,), daemon=True).start()
            elif time.monotonic() - asked > ECHO:
                _end_at_once(number, frame)

        scheduler.exit_gracefully = in_a_thread
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _end_at_once)


def _end_at_once(number: int, _frame: FrameType | None) -> None:
    """Pass a signal on to the jobs that run here, and end as at Ctrl-C."""
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            for job in thread.read_text(encoding="ascii").split():
                os.kill(int(job), number)
    raise KeyboardInterrupt


# One run at a time writes a folder of results, from whichever clone it was started.

_asked: dict[str, Callable[[], Iterable[Path]]] = {}


def run_alone(name: str, locks: Callable[[], Iterable[Path]]) -> None:
    """Let a run of Snakemake hold these locks from its plan to its end.

    Snakemake's own lock lies in `.snakemake` of the folder where it was started, so it does not see another clone that
    writes the same results. A dry run, `--unlock`, `--nolock` and the processes of jobs take no lock.

    Args:
        name: of a workflow; two that one Snakefile imports hold the locks of both.
        locks: the lock files when the run begins.
    """
    _asked[name] = locks
    _hold_while_it_runs()


@cache
def _hold_while_it_runs() -> None:
    workflow = borrowed(
        "snakemake.workflow:Workflow.execute", None, "two runs that write the same results are not kept apart"
    )
    if workflow is None:
        return
    from snakemake.exceptions import WorkflowError

    theirs = workflow.execute

    @wraps(theirs)
    def execute(self: Any, executor_plugin: Any, *arguments: Any, **named: Any) -> Any:
        writes = self.is_main_process and not executor_plugin.common_settings.dryrun_exec
        with ExitStack() as stack:
            if writes and self.execution_settings.lock:
                try:
                    hold(stack, (lock for asked in _asked.values() for lock in asked()))
                except UserError as error:
                    raise WorkflowError(str(error)) from None
            return theirs(self, executor_plugin, *arguments, **named)

    workflow.execute = execute


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
