"""Functions of Snakemake that brainfed replaces, though they are not part of its public interface.

Each is asked for by its place and its parameters (`borrowed`). If Snakemake has another one, the run says so once and
goes on without it; `docs/reference/borrowed.md` lists what it lacks then.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any

from brainfed.runtime._disk import folder_lock
from brainfed.runtime._errors import UserError
from brainfed.runtime._settings import borrowed
from brainfed.runtime.records import EDITED, Records, dated_ahead, is_one_of

# The scheduler's timers.


@cache
def keep_one_timer() -> None:
    """Let Snakemake's scheduler have one timer at a time.

    It looks for jobs when one has ended, and again after the time span of its limit on jobs, which is a second. Each
    look starts a timer, and that timer causes the next look. So every job that ends would add a chain of timers: after
    150 jobs Snakemake would look, and start a thread, 150 times a second. The process would wait for the last of them.
    """
    scheduler = borrowed(
        "snakemake.scheduling.job_scheduler:JobScheduler._schedule_reevalutation",
        ("self", "delay"),
        "after many jobs, this process looks for new ones more often than it needs to",
    )
    if scheduler is None:
        return

    def look_again(self: Any, delay: float) -> None:
        """Have the scheduler look again so many seconds from now; called by its own thread alone."""
        self._look_at = time.monotonic() + delay
        if not getattr(self, "_timer_runs", False):
            start(self, delay)

    def start(self: Any, delay: float) -> None:
        self._timer_runs = True
        timer = threading.Timer(delay, ended, (self,))
        timer.daemon = True
        timer.start()

    def ended(self: Any) -> None:
        """Let the scheduler look, and start the timer of a later request."""
        left = self._look_at - time.monotonic()
        if left > 0:
            start(self, left)
        else:
            self._timer_runs = False
        self._open_jobs.release()

    scheduler._schedule_reevalutation = look_again


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


# Which results are current, by the records beside them.

QUERIES = {
    "has_metadata": ("self", "job"),
    "has_outdated_metadata": ("self", "job"),
    "params_changed": ("self", "job", "file"),
    "input_changed": ("self", "job", "file"),
    "input_checksums": ("self", "job", "input_path"),
    "finished": ("self", "job"),
}
"""Snakemake's functions on the metadata of a job, and their parameters."""


def judge_by_records(records: Records) -> None:
    """Answer Snakemake's queries about the jobs of these records from them; its planning is untouched.

    Snakemake's own metadata compare parameters as a set of values without names, inputs by their times, and nothing at
    all where `.snakemake` is gone. `--rerun-triggers` works as before.
    """
    place = "snakemake.persistence:PersistenceBase"
    without = "results are judged by Snakemake's own records, and computed again where these are not beside them"
    if not all(borrowed(f"{place}.{name}", parameters, without) for name, parameters in QUERIES.items()):
        return
    from snakemake.exceptions import WorkflowError
    from snakemake.persistence import NO_PARAMS_CHANGE, ParamsChange, PersistenceBase

    theirs = {name: getattr(PersistenceBase, name) for name in QUERIES}

    def judged(job: Any) -> str:
        try:
            return records.judge(job)
        except UserError as error:
            raise WorkflowError(str(error)) from None

    def params_changed(_: Any, job: Any, file: Any = None) -> Any:  # noqa: ARG001
        reason = judged(job)
        return ParamsChange(only_new={reason}, files=set(map(str, job.output))) if reason else NO_PARAMS_CHANGE

    def input_changed(_: Any, job: Any, file: Any = None) -> Any:
        changed = judged(job) in EDITED
        return changed if file is not None else (output for output in job.output if changed)

    def input_checksums(self: Any, job: Any, input_path: Any) -> set[Any]:
        digest = records.checksum(job, str(input_path))
        if digest is None:
            return set(theirs["input_checksums"](self, job, input_path))
        cached = job.dag.workflow.iocache
        if cached.active:
            # Snakemake would read the file at every start.
            cached.checksum[input_path] = f"sha256:{records.contents.now(str(input_path)).digest}"
        return {f"sha256:{digest}"}

    def has_metadata(*_: Any) -> bool:
        return True

    def has_outdated_metadata(*_: Any) -> bool:
        return False

    for ours in (has_metadata, has_outdated_metadata, params_changed, input_changed, input_checksums):
        setattr(PersistenceBase, ours.__name__, _of_our_jobs(records, ours, theirs[ours.__name__]))

    async def finished(self: Any, job: Any) -> None:
        await theirs["finished"](self, job)
        records.finished(job)  # Also of a job whose outputs did not stand when it was planned.

    PersistenceBase.finished = finished
    atexit.register(records.announce)


def _of_our_jobs(records: Records, ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """The answer of these records on their jobs, and Snakemake's own on others."""

    @wraps(theirs)
    def query(self: Any, job: Any, *further: Any, **named: Any) -> Any:
        return (ours if records.concerns(job) else theirs)(self, job, *further, **named)

    return query


# Files that are dated after now, by a machine whose clock is ahead.

_tables: list[str] = []
"""Phenotype tables of our workflows, of which a host may import several."""


def keep_whatever_the_dates(rules: Mapping[str, Any], tables: Iterable[str]) -> None:
    """Name the files of a plan that are dated after now, and let Snakemake keep outputs that are older than an input.

    It would delete them at every start anew, as by dates they are not current. Our records compare contents.

    Args:
        rules: all names in the rule files of the workflow; jobs of other rules are judged by Snakemake.
        tables: its phenotype tables, which no job reads: their values are parameters.
    """
    _tables.extend(tables)
    _name_dated_ahead()
    dag = borrowed(
        "snakemake.dag:DAG.check_output_mtime",
        ("self", "job", "expanded_output"),
        "a job ends with an error if one of its inputs is dated after now",
    )
    if dag is None:
        return
    theirs = dag.check_output_mtime

    @wraps(theirs)
    async def check_output_mtime(self: Any, job: Any, expanded_output: Any) -> None:
        if not is_one_of(rules, job):
            await theirs(self, job, expanded_output)

    dag.check_output_mtime = check_output_mtime


@cache
def _name_dated_ahead() -> None:
    workflow = borrowed("snakemake.workflow:Workflow._build_dag", ("self",), "files dated after now are not named")
    if workflow is None:
        return
    build = workflow._build_dag

    @wraps(build)
    def build_dag(self: Any) -> None:
        build(self)
        if self.is_main_process:
            of_jobs = (str(path) for job in self.dag.jobs for path in (*job.input, *job.output))
            if sentence := dated_ahead(dict.fromkeys((*_tables, *of_jobs))):
                print(sentence, file=sys.stderr)

    workflow._build_dag = build_dag
