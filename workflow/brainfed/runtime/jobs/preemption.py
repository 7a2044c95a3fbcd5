"""A job that SLURM preempts with notice goes back into the queue, at no cost of Snakemake's `retries`.

SLURM sends a preempted job SIGTERM and lets it go on for the partition's GraceTime. A job that ends in that time counts
as failed, unless it asks for its own return. `scancel` sends the same signal; only a preemption sets PreemptTime.
"""

import logging
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress

PREEMPTED = re.compile(r"\bPreemptTime=\d")
SUBMITTED_BY_SNAKEMAKE = re.compile(r"\bComment=rule_")
PATIENCE = 12.0
"""Seconds for SLURM's controller to answer all: with those that a job has to stop, fewer than KillWait's 30."""

logger = logging.getLogger(__name__)


def return_to_queue(held_up: bool = False) -> None:
    """Ask SLURM to start this job anew, if SLURM preempts it and Snakemake submitted it; the last step of a job.

    A workflow that was started inside an allocation is left to the user who submitted that.

    Args:
        held_up: whether the main thread does not go on, which runs no handler then, and may hold the log's lock.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        return
    # A granted request ends the job's processes; this one must not end while it makes the request.
    if not held_up:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    say = _say_on_stderr if held_up else logger.log
    until = time.monotonic() + PATIENCE
    described = _scontrol(say, until, "show", "job", job)
    if not (PREEMPTED.search(described) and SUBMITTED_BY_SNAKEMAKE.search(described)):
        return
    say(logging.WARNING, f"SLURM preempts job {job}: it goes back into the queue")
    _scontrol(say, until, "requeue", job)


def _say_on_stderr(_: int, message: str) -> None:
    with suppress(OSError):
        os.write(2, f"{message}\n".encode())


def _scontrol(say: Callable[[int, str], None], until: float, *arguments: str) -> str:
    """Output of SLURM's command; empty where it fails, with the reason in the log."""
    left = max(until - time.monotonic(), 0.0)
    try:
        done = subprocess.run(["scontrol", *arguments], capture_output=True, text=True, timeout=left, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        say(logging.INFO, f"scontrol {' '.join(arguments)}: {error} {getattr(error, 'stderr', '') or ''}")
        return ""
    return done.stdout
