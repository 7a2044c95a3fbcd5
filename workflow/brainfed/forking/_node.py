"""A node: a process that has imported libraries, and forks jobs and further nodes."""

import atexit
import builtins
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from brainfed.forking.client import LONGEST, NUMBER, PASSED_ON, takes_signals

PACKAGE = "brainfed"
JOB = b"\0"
"""The server's message with the connection of a client; any other names modules, with the intake of a further node."""
WORDS_S = 1.0
"""For a client to name its script, and to send its job."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""


def serve(intake: socket.socket) -> None:
    """Fork jobs and further nodes until nobody can ask any more; in the process of a job, run its script.

    Args:
        intake: messages of the server.
    """
    gc.collect()
    gc.freeze()
    while True:
        message, received, _, _ = socket.recv_fds(intake, LONGEST, 1)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG if message else 0) != (0, 0):
                pass
        if not message:
            os._exit(0)  # Python would first take down all that was imported.
        if not received:  # This process has no descriptor left for it.
            continue
        other = socket.socket(fileno=received[0])
        if _fork() != 0:
            other.close()
            continue
        intake.close()
        if message == JOB:
            return run(*_kept(other))
        for name in message.decode().split("\0"):
            with suppress(ImportError):
                importlib.import_module(name)
        return serve(other)


def _fork() -> int | None:
    """Fork as `os.fork` does; None if no process can be made, or if this one has further threads.

    They would be missing in a fork, with the locks that they hold.
    """
    try:
        return os.fork() if len(list(Path("/proc/self/task").iterdir())) == 1 else None
    except OSError:
        return None


def _kept(client: socket.socket) -> tuple[bytes, list[int]]:
    """Fork the job of a client, and return its words and streams (`run`) in the process of the job.

    This process passes the client's signals on, reports how the job has ended, and ends. The job is in its own group:
    it ends as a whole with its client.
    """
    client.settimeout(WORDS_S)
    try:
        words, streams, flags, _ = socket.recv_fds(client, LONGEST, 3)
    except OSError:
        os._exit(1)
    client.settimeout(None)
    keeper = os.getpid()
    process = _fork() if len(streams) == 3 and not flags & socket.MSG_TRUNC else None
    if process is None:  # Whoever has no answer runs the script by itself.
        os._exit(1)
    if process == 0:
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(1)
        client.sendall(NUMBER.pack(os.getpid()))
        client.close()
        return words, streams
    with suppress(OSError):  # Whoever comes first.
        os.setpgid(process, process)
    for stream in streams:
        os.close(stream)
    ended, number = os.pidfd_open(process), 0
    while number != signal.SIGKILL and ended not in select.select((client.fileno(), ended), (), ())[0]:
        try:
            number = client.recv(1)[0]
        except (OSError, IndexError):  # The client has gone.
            number = signal.SIGKILL
        # A pause and a kill are for all processes of a job, which may have left its group; of the others, those that a
        # job has started hear through it.
        to_all = number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL)
        for send in (os.killpg, os.kill) if to_all else (os.kill,):
            with suppress(ProcessLookupError):
                send(process, number)
    _, status = os.waitpid(process, 0)
    with suppress(OSError):
        client.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


# What makes a forked process the process of a job: streams, folder, variables, signals and script.


def run(words: bytes, streams: Sequence[int]) -> None:
    """Run a script as the process that `python SCRIPT` would be, and end that process after a success.

    Args:
        words: of the client: script, folder, umask, numbers of the signals that it ignores, and variables.
        streams: standard input, output and error.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
    script, folder, umask, ignored, *variables = map(os.fsdecode, words.split(b"\0"))
    for name in STARTED_WITH:
        os.environ.pop(name, None)
    os.environ.update((name, value) for name, _, value in (each.partition("=") for each in variables))
    os.umask(int(umask))
    os.chdir(folder)
    for number in PASSED_ON:
        usual: Any = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if str(int(number)) in ignored.split(",") else usual)
    _forget()
    sys.argv = [script]
    installed = [folder for folder in sys.path if folder not in SEARCHED]
    sys.path[:] = [str(Path(script).parent), *folders(os.environ.get("PYTHONPATH", "")), *installed]
    module = ModuleType("__main__")
    module.__file__, module.__builtins__ = script, builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    code = compile(Path(script).read_bytes(), script, "exec")
    if not takes_signals(script):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    exec(code, module.__dict__)
    _end(module)


def folders(text: str) -> list[str]:
    """Folders of a variable like PYTHONPATH."""
    return [str(Path(folder).absolute()) for folder in text.split(os.pathsep)] if text else []


SEARCHED = frozenset(folders(os.environ.get("PYTHONPATH", "")))
"""Folders of PYTHONPATH when this process was started; in `sys.path` they come before what is installed."""
STARTED_WITH = frozenset(os.environ)
"""Names of its variables; libraries set further ones when they are imported."""


def _forget() -> None:
    """Give up the modules of the workflow, which a job imports itself, and the common state of random numbers."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _end(script: ModuleType) -> None:
    """End as a Python that has run its script, but leave what it has imported to the system.

    To take it down takes a tenth of a second, and half a second with torch. Threads that Python would wait for, and
    text that cannot be printed, are left to Python.
    """
    if not all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        return
    with suppress(OSError, ValueError):
        atexit._run_exitfuncs()
        # Files that the script has left open are written as they are closed.
        script.__dict__.clear()
        gc.collect()
        for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
            if stream is not None:
                stream.flush()
        ctypes.CDLL(None).fflush(None)
        os._exit(0)
