"""Stopping a job by a signal: at once, or after the round that runs.

A scheduler that takes a machine back sends SIGTERM and kills half a minute later (SLURM's KillWait); a person presses
Ctrl-C, or loses the connection to the terminal (SIGHUP). A killed workflow sends no signal, so a job also checks in
/proc that its workflow runs. Outside of a round a job stops at once: it writes nothing but whole files. A round may
end, so that its state can be kept; a second signal stops it too, unless it is an echo (SLURM signals a preempted job
twice, itself and through srun, 5 ms apart). A SIGKILL loses the work since the last checkpoint.

Libraries may keep an interrupt for themselves (an import that turns it into an error of its own, a destructor, compiled
code that does not return). So a stop stays asked for whatever becomes of the exception, and a job that has not ended
some seconds later is ended.
"""

import logging
import os
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""With these blocked a job may begin; they are heard when its handlers stand, and by its main thread alone."""
STARTED_BY = "BRAINFED_STARTED_BY"
"""Variable with the process that Snakemake started for this one, where that is not its parent (`brainfed.forking`)."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOOK_EVERY, ECHO = 1.0, 1.0
"""Seconds between two checks of the workflow; seconds after a signal in which a further one is its echo."""
PATIENCE = 15.0
"""Seconds for a job that has to stop at once; SLURM's KillWait is 30."""
SNAKEMAKE = re.compile(rb"(.*/)?snakemake(\.[\w.]+)?")

Unit = TypeVar("Unit")

# A signal to a process that a job has forked is none of the job's.
os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))


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

    def heard_after(self, former: "signal._HANDLER") -> Callable[[int, FrameType | None], None]:
        """A handler for a stopped job's last steps: it ignores an echo, and leaves later signals to the former one."""

        def hear(number: int, _frame: FrameType | None) -> None:
            if time.monotonic() - self.time >= ECHO:
                signal.signal(number, former)
                os.kill(os.getpid(), number)

        return hear


_request = _StopRequest()


@contextmanager
def stoppable(end: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Turn the signals, and the end of the workflow that started this job, into KeyboardInterrupt in the body.

    Ignored signals stay ignored: `nohup` and a shell's background jobs rely on it. A signal that came before, while
    they were blocked, is heard now. If the body ends in another way after a signal, the interrupt is raised then. After
    a stop an echo of its signal is not heard.

    Args:
        end: called with the name of the signal where the body has not stopped in time; it ends the process.
    """
    # They are heard by the main thread alone: the others begin with them blocked.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    handled = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    former = {number: signal.signal(number, _request.receive) for number in handled}
    watch = _Watch(end)
    try:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
            asked = _request.made
        if asked:
            raise KeyboardInterrupt
    except Exception:
        if asked:
            raise KeyboardInterrupt from None
        raise
    finally:
        watch.close()
        for number, handler in former.items():
            signal.signal(number, _request.heard_after(handler) if _request.made else handler)
        _request.made = _request.in_unit = False
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)


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


class _Watch:
    """A thread that asks for a stop as soon as a process between this one and its workflow is gone, and ends this one
    where a stop at once does not happen.

    The system tells it of every signal (`signal.set_wakeup_fd`), even where compiled code keeps the main thread from
    running a handler.
    """

    def __init__(self, end: Callable[[str], None]) -> None:
        self._end, self._line = end, _line_to_workflow()
        self._heard, tell = socket.socketpair()
        self._tell = tell
        tell.setblocking(False)
        self._former = signal.set_wakeup_fd(tell.fileno(), warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        signal.set_wakeup_fd(self._former)
        self._tell.close()
        self._thread.join()
        self._heard.close()

    def _run(self) -> None:
        last, calls, due = signal.Signals.SIGTERM, [-ECHO], None
        while True:
            if select.select([self._heard], [], [], LOOK_EVERY)[0]:
                numbers = [number for number in self._heard.recv(64) if number in SIGNALS]
                if not numbers and self._tell.fileno() < 0:
                    return
                now = time.monotonic()
                if numbers and now - calls[-1] >= ECHO:
                    calls.append(now)
                    last = signal.Signals(numbers[0])
            if self._line and tuple(_ancestors(len(self._line))) != self._line:
                self._line = ()
                if not stop_asked():
                    os.kill(os.getpid(), signal.SIGTERM)
            at_once = len(calls) > 2 or (len(calls) > 1 and not _request.in_unit)
            due = (due or time.monotonic() + PATIENCE) if at_once else None
            if due is not None and time.monotonic() > due:
                self._end(last.name)
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


# A job that SLURM preempts with notice goes back into the queue, at no cost of Snakemake's `retries`.
#
# SLURM sends a preempted job SIGTERM and lets it go on for the partition's GraceTime. A job that ends in that time
# counts as failed, unless it asks for its own return. `scancel` sends the same signal; only a preemption sets
# PreemptTime.

PREEMPTED = re.compile(r"\bPreemptTime=\d")
SUBMITTED_BY_SNAKEMAKE = re.compile(r"\bComment=rule_")
REQUEUE_PATIENCE = 12.0
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
    until = time.monotonic() + REQUEUE_PATIENCE
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
