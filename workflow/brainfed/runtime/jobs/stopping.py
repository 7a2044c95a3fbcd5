"""How a job hears that it must stop, and where it does: at once, or after the round that runs.

A scheduler that takes a machine back sends SIGTERM and kills half a minute later (SLURM's KillWait); a person presses
Ctrl-C, or loses the connection to the terminal (SIGHUP); a workflow that is killed outright says nothing, so a job
also looks in /proc whether the one that started it lives. Outside of a round a job stops at once: it writes nothing
but whole files. A round is let end, so that its state can be kept; a second signal stops that too, unless it is an echo
(SLURM tells a job that it preempts twice, itself and through srun, 5 ms apart). A SIGKILL in the meantime costs what
was not kept yet.
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

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOK_EVERY, ECHO = 1.0, 1.0
"""Seconds between two looks at the workflow; within which a further signal says no more than the first."""
SNAKEMAKE = re.compile(rb"(.*/)?snakemake(\.[\w.]+)?")

Unit = TypeVar("Unit")


class _Ears:
    """What has been heard. Signals reach the main thread of a process, so one object is enough."""

    def __init__(self) -> None:
        self.asked = self.in_unit = False
        self.name, self.heard = "an interrupt", 0.0

    def hear(self, number: int, _frame: FrameType | None) -> None:
        again, now = self.asked, time.monotonic()
        if again and now - self.heard < ECHO:
            return
        self.asked, self.heard, self.name = True, now, signal.Signals(number).name
        if not self.in_unit or again:
            raise KeyboardInterrupt
        # Neither logging nor print may be entered a second time from a signal's handler; the terminal may be gone.
        with suppress(OSError):
            os.write(2, f"{self.name}: stopping after this round; once more stops at once\n".encode())


_ears = _Ears()


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn the signals, and the end of the workflow that started this job, into KeyboardInterrupt in the body.

    A signal that is ignored stays so: `nohup` and a shell's background mean it.
    """
    heard = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    former = {number: signal.signal(number, _ears.hear) for number in heard}
    ended = threading.Event()
    threading.Thread(target=_look_up, args=(_line_to_workflow(), ended), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        _ears.asked = _ears.in_unit = False
        for number, handler in former.items():
            signal.signal(number, handler)


def stop_asked() -> bool:
    """Whether the job is to stop after the unit that runs."""
    return _ears.asked


def stopped_by() -> str:
    """The name of the signal that was heard, for the job's last sentence."""
    return _ears.name


def whole(units: Iterable[Unit]) -> Iterator[Unit]:
    """Iterate over units of work (rounds) that a stop lets end; it raises KeyboardInterrupt between two of them.

    Where a stop has been asked for, the unit is to keep its state before it ends.
    """
    _ears.in_unit = True
    try:
        for unit in units:
            yield unit
            if stop_asked():
                raise KeyboardInterrupt
    finally:
        _ears.in_unit = False


def _look_up(line: tuple[int, ...], ended: threading.Event) -> None:
    """Ask for a stop as soon as a process between this one and its workflow is gone."""
    while line and not ended.wait(LOOK_EVERY):
        if tuple(_ancestors(len(line))) != line:
            if not stop_asked():
                os.kill(os.getpid(), signal.SIGTERM)
            return


def _line_to_workflow() -> tuple[int, ...]:
    """The processes from this one's parent up to the nearest Snakemake; none where /proc tells of no such line.

    So it is for a job whose workflow died while Python started. It is not stopped: in a container that numbers its
    processes anew, or under a program that calls Snakemake as a library, a healthy job finds the same.
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
    """The parent of this process, its parent, and so on; without /proc the parent alone."""
    pid = os.getppid()
    while pid > 1 and most != 0:
        yield pid
        most = None if most is None else most - 1
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return
        # The second field is the program's name in brackets, which may hold anything.
        pid = int(stat.rpartition(")")[2].split()[1])
