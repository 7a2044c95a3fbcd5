"""How a run ends when it is asked to, and how it has its results for itself."""

import atexit
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from brainfed.runtime._disk import folder_lock

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
