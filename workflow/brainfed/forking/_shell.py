"""The shell that jobs start in, as a resource of their rules: it has a node fork their scripts."""

import os
import re
import secrets
import subprocess
import sys
from functools import cache, wraps
from pathlib import Path
from typing import Any

from brainfed.forking import client
from brainfed.runtime import UserError, borrowed

NAME = re.compile(r"\d+-\w+")
SHELL = Path(__file__).with_name("job-shell")
PYTHON, BLOCKED = "BRAINFED_PYTHON", "BRAINFED_BLOCKED"
"""Variables that the shell reads: this Python, and a command that blocks signals before Python starts."""
BLOCKING = "env --block-signal=INT,TERM,HUP,QUIT,USR1,USR2"
"""Of GNU coreutils from 8.31 on."""


class _Path(str):
    """A path that is quoted where it is formatted: Snakemake writes it as it is into the first line of a script."""

    def __format__(self, _: str) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def job_shell(forks: bool = True) -> str:
    """The value of a rule's resource `shell_exec`, and the variables that this shell reads.

    It starts scripts of this Python, without a shell between Snakemake and the job: an older one than bash 5.1 would
    die of a signal to all processes (Ctrl-C, a cluster that wants its node back) while the job ends its round, and
    Snakemake would go on without the job. Other commands run in bash as they are. Rules without the resource have
    Snakemake's own shell.

    Args:
        forks: whether jobs may be forked, where processes have descriptors and BRAINFED_FORKS is not `off`.

    Raises:
        UserError: BRAINFED_FORKS has another value.
    """
    name = os.environ.get(client.VARIABLE, "")
    if name and name != client.OFF and not NAME.fullmatch(name):
        raise UserError(
            f"{client.VARIABLE}: expected `off`, or no value, found {name!r}; `off` has every job import its libraries "
            "by itself."
        )
    if name == client.OFF or not forks or not _has_descriptors() or not _measures_forked_jobs():
        os.environ[client.VARIABLE] = client.OFF
    # The variable names a process whose end is the end of the server: this one, or that of an outer run.
    elif not name or not Path("/proc", client.owner_of(name)).exists():
        os.environ[client.VARIABLE] = f"{os.getpid()}-{secrets.token_hex(8)}"
    os.environ[PYTHON] = sys.executable
    os.environ[BLOCKED] = BLOCKING if _can_block() else ""
    return _Path(SHELL if os.access(SHELL, os.X_OK) else "bash")


def _has_descriptors() -> bool:
    """Whether the kernel and Python have pidfds: Linux from 5.3 on, and a Python that was built there."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


@cache
def _can_block() -> bool:
    try:
        return subprocess.run([*BLOCKING.split(), "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@cache
def _measures_forked_jobs() -> bool:
    """Whether Snakemake (`benchmark:`) counts a forked job among the children of its client, from now on."""
    timer = borrowed(
        "snakemake.benchmark:BenchmarkTimer.__init__",
        ("self", "pid", "bench_record", "interval"),
        "jobs are not forked, and take a second or two longer each",
    )
    if timer is None:
        return False
    theirs = timer.__init__

    @wraps(theirs)
    def watch(self: Any, *arguments: Any, **options: Any) -> None:
        theirs(self, *arguments, **options)
        children = self.main.children
        self.main.children = lambda recursive=False: _job_of(self.main.pid) or children(recursive=recursive)

    timer.__init__ = watch
    return True


def _job_of(client_process: int) -> list[Any]:
    """The process that runs the script of a client, and its descendants; of any other process, none."""
    import psutil

    try:
        called = re.fullmatch(rf"{client.NAMED}(\d+)\n", Path(f"/proc/{client_process}/comm").read_text("utf-8"))
        job = psutil.Process(int(called[1])) if called else None
        return [job, *job.children(recursive=True)] if job else []
    except (psutil.NoSuchProcess, OSError):
        return []
