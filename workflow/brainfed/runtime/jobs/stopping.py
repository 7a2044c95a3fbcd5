"""Stopping a job by a signal: at once, or after the round that runs.

A scheduler that takes a machine back sends SIGTERM and kills half a minute later (SLURM's KillWait); a person presses
Ctrl-C, or loses the connection to the terminal (SIGHUP). A killed workflow sends no signal, so a job also checks in
/proc that its workflow runs. Outside of a round a job stops at once: it writes nothing but whole files. A round may
end, so that its state can be kept; a second signal stops it too, unless it is an echo (SLURM signals a preempted job
twice, itself and through srun, 5 ms apart). A SIGKILL loses the work since the last checkpoint.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

from brainfed.runtime.forking.client import STARTED_BY

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOK_EVERY, ECHO = 1.0, 1.0
"""Seconds between two checks of the workflow; seconds after a signal in which a further one is its echo."""
SNAKEMAKE = re.compile(rb"(.*/)?snakemake(\.[\w.]+)?")

Unit = TypeVar("Unit")


class _StopRequest:
    """The request to stop. Signals reach the main thread of a process, so one object is enough."""

    def __init__(self) -> None:
        self.made = self.in_unit = False
        self.signal, self.time = "an interrupt", 0.0

    def receive(self, number: int, _frame: FrameType | None) -> None:
        again, now = self.made, time.monotonic()
        if again and now - self.time < ECHO:
            return
        self.made, self.time, self.signal = True, now, signal.Signals(number).name
        if not self.in_unit or again:
            raise KeyboardInterrupt
        # Neither logging nor print may be entered a second time from a signal's handler; the terminal may be gone.
        with suppress(OSError):
            os.write(2, f"{self.signal}: stopping after this round; once more stops at once\n".encode())


_request = _StopRequest()


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn the signals, and the end of the workflow that started this job, into KeyboardInterrupt in the body.

    Ignored signals stay ignored: `nohup` and a shell's background jobs rely on it.
    """
    handled = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    former = {number: signal.signal(number, _request.receive) for number in handled}
    ended = threading.Event()
    threading.Thread(target=_watch_workflow, args=(_line_to_workflow(), ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _request.made = _request.in_unit = False
        for number, handler in former.items():
            signal.signal(number, handler)


def stop_asked() -> bool:
    """Whether the job has to stop after the unit that runs."""
    return _request.made


def stopped_by() -> str:
    """The name of the signal received, for the job's last sentence."""
    return _request.signal


def whole(units: Iterable[Unit]) -> Iterator[Unit]:
    """Iterate over units of work (rounds); a stop lets a unit end and raises KeyboardInterrupt after it.

    A unit must keep its state before it ends where `stop_asked`.
    """
    _request.in_unit = True
    try:
        for unit in units:
            yield unit
            if stop_asked():
                raise KeyboardInterrupt
    finally:
        _request.in_unit = False


def _watch_workflow(line: tuple[int, ...], ended: threading.Event) -> None:
    """Ask for a stop as soon as a process between this one and its workflow is gone."""
    while line and not ended.wait(LOOK_EVERY):
        if tuple(_ancestors(len(line))) != line:
            if not stop_asked():
                os.kill(os.getpid(), signal.SIGTERM)
            return


def _line_to_workflow() -> tuple[int, ...]:
    """The processes from this one's parent up to the nearest Snakemake; none where /proc shows no such line.

    A job whose workflow died while Python started finds none, and is not stopped: a healthy job finds none either in a
    container that numbers its processes anew, or under a program that calls Snakemake as a library.
    """
    line = []
    for pid in _ancestors():
        line.append(pid)
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return ()
        if _runs_snakemake(command):
            return tuple(line)
    return ()


def _runs_snakemake(command: bytes) -> bool:
    """Whether a command line is Snakemake's, by its program, script or module (`python -m snakemake`).

    A shell's text may name .snakemake/scripts, where the scripts of jobs lie, and a container's options its folders.
    """
    program, *arguments = command.split(b"\0")
    script = next((argument for argument in arguments if not argument.startswith(b"-")), b"")
    return any(SNAKEMAKE.fullmatch(name) for name in (program, script))


def _ancestors(most: int | None = None) -> Iterator[int]:
    """The parent of this process, its parent, and so on; without /proc the parent alone.

    A forked job stands below the client that Snakemake started for it.
    """
    pid = int(os.environ.get(STARTED_BY, os.getppid()))
    while pid > 1 and most != 0:
        yield pid
        most = None if most is None else most - 1
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        # The second field is the program's name in brackets, which may hold anything.
        pid = int(stat.rpartition(")")[2].split()[1])
