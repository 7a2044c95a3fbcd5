"""How often Snakemake looks for jobs."""

from threading import Timer
from time import monotonic
from typing import Any


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
    """Let the scheduler look, and start a timer for a later request."""
    left = scheduler._look_at - monotonic()
    if left > 0:
        _start(scheduler, left)
    else:
        scheduler._timer_runs = False
    scheduler._open_jobs.release()
