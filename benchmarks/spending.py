"""What a command takes, with all processes that it has started."""

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER of prctl."""


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of all processors."""

    wall: float
    cpu: float


def adopt_orphans() -> None:
    """Have processes whose parent ends be children of this one, on Linux: it can wait for them and count them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)


def wait_for_orphans() -> None:
    """Wait for the forking process of a run and its nodes, which are nobody's children when Snakemake has ended."""
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def spent(command: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> tuple[Spent, str]:
    """What a command takes, and what it prints.

    Args:
        command: a program and its arguments.
        folder: that it runs in.
        variables: additions to its environment.
    """
    before, start = _of_children(), time.monotonic()
    environment = os.environ | dict(variables or {})
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    wall = time.monotonic() - start
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    wait_for_orphans()
    return Spent(wall, _of_children() - before), done.stdout


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
