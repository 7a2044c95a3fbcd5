"""How often Snakemake chooses jobs."""

from threading import Timer
from typing import Any


def choose_once_a_second() -> None:
    """Let Snakemake's scheduler have one timer at a time.

    Whenever it has chosen jobs, it starts a timer that has it choose again a second later, for its limit on jobs a
    second. So every job that ends would add a chain of timers: after 150 jobs it would choose, and start a thread, 150
    times a second, and the process would end a second after its work, with the last timer.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    theirs = getattr(JobScheduler, "_schedule_reevalutation", None)
    if theirs is None or theirs.__module__ == __name__:
        return

    def once(scheduler: Any, delay: float) -> None:
        if getattr(scheduler, "_waits", False):
            return

        def again() -> None:
            scheduler._waits = False
            scheduler._open_jobs.release()

        scheduler._waits = True
        timer = Timer(delay, again)
        timer.daemon = True
        timer.start()

    JobScheduler._schedule_reevalutation = once
