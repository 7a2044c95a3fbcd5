"""Changes to Snakemake's scheduler: when it looks for jobs, how it ends, its locks, files dated after now."""

import os
import signal
import sys
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
from brainfed.runtime._errors import UserError
from brainfed.runtime.records import GIVEN, dated_ahead


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
    from snakemake.exceptions import WorkflowError
    from snakemake.workflow import Workflow

    theirs = Workflow.execute
    _asked[name] = locks
    if theirs.__module__ == __name__:
        return

    def execute(workflow: Any, executor_plugin: Any, *arguments: Any, **named: Any) -> Any:
        writes = workflow.is_main_process and not executor_plugin.common_settings.dryrun_exec
        with ExitStack() as stack:
            if writes and workflow.execution_settings.lock:
                try:
                    hold(stack, (lock for asked in _asked.values() for lock in asked()))
                except UserError as error:
                    raise WorkflowError(str(error)) from None
            return theirs(workflow, executor_plugin, *arguments, **named)

    Workflow.execute = execute


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


# Files that are dated after now: a run says so, and they are no reason to lose what a job has computed.

TABLES = "PHENOTYPE_TABLES"
_ours = list[Mapping[str, Any]]()
"""Names in the rule files of each of our workflows, of which a host may import several."""


def keep_whatever_the_dates(rules: Mapping[str, Any]) -> None:
    """Name the files of a plan that are dated after now, and let Snakemake keep outputs that are older than an input.

    It would delete them at every start anew, as by dates they are not current. Our records compare contents.

    Args:
        rules: all names in the rule files of the workflow, its phenotype tables under `TABLES`; jobs of other rules are
            judged by Snakemake.
    """
    from snakemake.dag import DAG
    from snakemake.workflow import Workflow

    _ours.append(rules)
    theirs, build = DAG.check_output_mtime, Workflow._build_dag
    if theirs.__module__ == __name__:
        return

    def build_dag(workflow: Any) -> None:
        build(workflow)
        if workflow.is_main_process:
            of_jobs = (str(path) for job in workflow.dag.jobs for path in (*job.input, *job.output))
            # No job reads a phenotype table: its values are parameters.
            tables = (path for rules in _ours for path in rules[TABLES])
            if said := dated_ahead(dict.fromkeys((*tables, *of_jobs))):
                print(said, file=sys.stderr)

    async def check_output_mtime(dag: Any, job: Any, outputs: Any) -> None:
        own = any(job.rule.module_globals is rules for rules in _ours)
        if not own or GIVEN not in dict(job.params.items()):
            await theirs(dag, job, outputs)

    DAG.check_output_mtime, Workflow._build_dag = check_output_mtime, build_dag
