"""A node: a process that has imported libraries, and forks jobs and further nodes."""

import atexit
import builtins
import ctypes
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from brainfed.forking.client import LONGEST, NUMBER, PASSED_ON, takes_signals

PACKAGE = "brainfed"
JOB = b"\0"
"""The server's message with the connection of a client; any other names modules, with the intake of a further node."""
WORDS_S = 1.0
"""For a client to send its job."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""


class Node:
    """Forks jobs until nobody can ask it any more and its jobs have ended.

    Args:
        intake: messages of the server.
    """

    def __init__(self, intake: socket.socket) -> None:
        self._intake = intake
        self._selector = selectors.DefaultSelector()
        self._nodes: list[int] = []

    def serve(self) -> "Node | Job | None":
        """Serve to the end and return None; in a forked process, return what that process is to be."""
        self._selector.register(self._intake, selectors.EVENT_READ, self._hear)
        gc.collect()
        gc.freeze()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if (role := key.data()) is not None:
                    return role  # type: ignore[no-any-return]
        return None

    def _hear(self) -> "Node | Job | None":
        """Take a message of the server."""
        message, received, _, _ = socket.recv_fds(self._intake, LONGEST, 1)
        if not message:
            self._selector.unregister(self._intake)
            return None
        if not received:  # This process has no descriptor left for it.
            return None
        other = socket.socket(fileno=received[0])
        self._nodes = [node for node in self._nodes if os.waitpid(node, os.WNOHANG) == (0, 0)]
        if message == JOB:
            return self._fork_job(other)
        process = _fork()
        if process != 0:
            other.close()
            self._nodes += [process] if process else []
            return None
        self._close()
        for name in message.decode().split("\0"):
            with suppress(ImportError):
                importlib.import_module(name)
        return Node(other)

    def _fork_job(self, client: socket.socket) -> "Job | None":
        """Fork a job, which is in its own group: it ends as a whole with its client."""
        job, parent = _asked_for(client), os.getpid()
        process = _fork() if job else None
        if job is None or process is None:
            client.close()
        elif process == 0:
            os.setpgid(0, 0)
            self._close()
            ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            _say(client, os.getpid())  # Whoever has no answer runs the script by itself.
            client.close()
            return job
        else:
            with suppress(OSError):  # Whoever comes first.
                os.setpgid(process, process)
            ended = os.pidfd_open(process)
            self._selector.register(ended, selectors.EVENT_READ, partial(self._end, ended, process, client))
            self._selector.register(client, selectors.EVENT_READ, partial(self._pass_on, process, client))
        for stream in job.streams if job else ():
            os.close(stream)
        return None

    def _pass_on(self, process: int, client: socket.socket) -> None:
        """Pass a client's signal on to its job; kill the job of a client that has gone."""
        if client.fileno() < 0:  # Its job has ended meanwhile.
            return
        try:
            number = client.recv(1)[0]
        except (OSError, IndexError):
            self._selector.unregister(client)
            number = signal.SIGKILL
        # A pause and a kill are for all processes of a job, which may have left its group; of the others, those that a
        # job has started hear through it.
        to_all = number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGKILL)
        for send in (os.killpg, os.kill) if to_all else (os.kill,):
            with suppress(ProcessLookupError):
                send(process, number)

    def _end(self, ended: int, process: int, client: socket.socket) -> None:
        """Report how a job has ended."""
        self._selector.unregister(ended)
        os.close(ended)
        with suppress(KeyError):
            self._selector.unregister(client)
        with client:
            _say(client, os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))

    def _close(self) -> None:
        """In a forked process, close what belongs to the node."""
        for key in self._selector.get_map().values():
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._intake.close()
        self._selector.close()


def _asked_for(client: socket.socket) -> "Job | None":
    """The job that a client asks for; None if the client has gone or is too slow."""
    try:
        client.settimeout(WORDS_S)
        words, streams, flags, _ = socket.recv_fds(client, LONGEST, 3)
        client.settimeout(None)
    except OSError:
        return None
    if len(streams) == 3 and not flags & socket.MSG_TRUNC:
        return Job(words, streams)
    for stream in streams:
        os.close(stream)
    return None


def _fork() -> int | None:
    """Fork as `os.fork` does; None if no process can be made, or if this one has further threads.

    They would be missing in a fork, with the locks that they hold.
    """
    try:
        return os.fork() if len(list(Path("/proc/self/task").iterdir())) == 1 else None
    except OSError:
        return None


def _say(client: socket.socket, number: int) -> None:
    with suppress(OSError):
        client.sendall(NUMBER.pack(number))


# What makes a forked process the process of a job: streams, folder, variables, signals and script.


@dataclass(frozen=True)
class Job:
    """A job that runs in a forked process.

    Attributes:
        words: of its client: script, folder, umask, numbers of the signals that it ignores, and variables.
        streams: standard input, output and error.
    """

    words: bytes
    streams: Sequence[int]

    def run(self) -> None:
        """Run the script as the process that `python SCRIPT` would be, and end that process after a success."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
        script, folder, umask, ignored, *variables = map(os.fsdecode, self.words.split(b"\0"))
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
