"""How Snakemake ends when it is asked to (SIGTERM)."""

from threading import Thread
from typing import Any


def end_when_asked() -> None:
    """Let Snakemake take its lock for SIGTERM in a thread.

    Its handler runs in the thread that chooses jobs. That thread holds the lock while it chooses, so the handler would
    wait for it for ever.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    theirs = JobScheduler.exit_gracefully
    if theirs.__module__ == __name__:
        return

    def in_a_thread(scheduler: JobScheduler, *_: Any) -> None:
        Thread(target=theirs, args=(scheduler,), daemon=True).start()

    JobScheduler.exit_gracefully = in_a_thread
