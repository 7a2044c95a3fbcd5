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
import struct
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from brainfed.forking.client import NUMBER, PASSED_ON, READY, STARTED_BY, peer, takes_signals

PACKAGE = "brainfed"
JOB, NODE = b"j", b"n"
"""Kinds of messages: a client with its script, and the socket of a further node with what it imports besides."""
LONGEST = 1 << 16
"""Bytes of a message."""
WORDS_S = 1.0
"""For a client to send the words of its job."""


@dataclass
class Node:
    """A process that forks jobs until nobody can ask it any more and its jobs have ended.

    Attributes:
        intake: messages of the server.
    """

    intake: socket.socket
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector, init=False)
    _jobs: dict[int, tuple[int, socket.socket]] = field(default_factory=dict, init=False)
    _nodes: list[int] = field(default_factory=list, init=False)

    def serve(self) -> "Node | Forked | None":
        """Serve to the end and return None; in a forked process, return what that process is to be."""
        self._selector.register(self.intake, selectors.EVENT_READ)
        gc.collect()
        gc.freeze()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if key.fileobj is self.intake:
                    role = self._hear()
                    if role is not None:
                        return role
                elif isinstance(key.fileobj, socket.socket):
                    self._pass_on(key.fileobj, key.data)
                else:
                    self._end(int(key.fd))
        return None

    def _hear(self) -> "Node | Forked | None":
        """Take a message of the server."""
        message, received, _, _ = socket.recv_fds(self.intake, LONGEST, 1)
        if not message:
            self._selector.unregister(self.intake)
            return None
        if not received:  # This process has no descriptor left for it.
            return None
        other = socket.socket(fileno=received[0])
        self._nodes = [node for node in self._nodes if os.waitpid(node, os.WNOHANG) == (0, 0)]
        if not _is_alone():
            other.close()
            return None
        if message[:1] == JOB:
            return self._fork_job(other, message[1:].decode("utf-8", "surrogateescape"))
        with other:
            process = _fork()
            if process != 0:
                self._nodes += [process] if process else []
                return None
            node = Node(other.dup())
        self._close()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        for name in message[1:].decode().split("\0"):
            with suppress(ImportError):
                importlib.import_module(name)
        return node

    def _fork_job(self, client: socket.socket, script: str) -> "Forked | None":
        """Fork a job, which is in its own group: it ends as a whole with its client."""
        job = _asked_for(client, script)
        parent, process = os.getpid(), None if job is None else _fork()
        if job is None or process is None:
            if job is not None:
                job.close()
            client.close()
            return None
        if process == 0:
            os.setpgid(0, 0)
            self._close()
            job.end_with(parent)
            _say(client, os.getpid())  # Whoever has no answer runs the script by itself.
            client.close()
            return job
        with suppress(OSError):  # Whoever comes first.
            os.setpgid(process, process)
        job.close()
        ended = os.pidfd_open(process)
        self._jobs[ended] = process, client
        self._selector.register(ended, selectors.EVENT_READ)
        self._selector.register(client, selectors.EVENT_READ, process)
        return None

    def _pass_on(self, client: socket.socket, process: int) -> None:
        """Pass a client's signals on to its job; kill the job of a client that has gone."""
        if client.fileno() < 0:  # Its job has ended meanwhile.
            return
        try:
            numbers = client.recv(64)
        except OSError:
            numbers = b""
        for number in numbers:
            # A pause is for all processes of a job; of the others, those that a job has started hear through it.
            send = os.killpg if number in (signal.SIGSTOP, signal.SIGCONT) else os.kill
            with suppress(ProcessLookupError):
                send(process, number)
        if numbers:
            return
        self._selector.unregister(client)
        for send in (os.killpg, os.kill):  # It may have left its group.
            with suppress(ProcessLookupError):
                send(process, signal.SIGKILL)

    def _end(self, ended: int) -> None:
        """Report how a job has ended."""
        process, client = self._jobs.pop(ended)
        self._selector.unregister(ended)
        os.close(ended)
        with suppress(KeyError):
            self._selector.unregister(client)
        _, status = os.waitpid(process, 0)
        with client:
            _say(client, os.waitstatus_to_exitcode(status))

    def _close(self) -> None:
        """In a forked process, close what belongs to the node."""
        self._selector.close()
        self.intake.close()
        for ended, (_, client) in self._jobs.items():
            os.close(ended)
            client.close()


def _asked_for(client: socket.socket, script: str) -> "Forked | None":
    """The job that a client asks for; None if the client has gone or is too slow."""
    streams: list[int] = []
    content = bytearray()
    try:
        client.settimeout(WORDS_S)
        client.sendall(READY)
        head, streams, _, _ = socket.recv_fds(client, NUMBER.size, 3)
        (length,) = NUMBER.unpack(head)
        while len(content) < length and (more := client.recv(length - len(content))):
            content += more
        client.settimeout(None)
        if len(content) == length and len(streams) == 3:
            return Forked.of(script, bytes(content), tuple(streams), peer(client)[0])
    except (OSError, struct.error, ValueError):
        pass
    for stream in streams:
        os.close(stream)
    return None


def _fork() -> int | None:
    """Fork as `os.fork` does; None if no process can be made. Signals wait until a job can take them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    process: int | None = None
    try:
        process = os.fork()
    except OSError:
        process = None
    finally:
        if process != 0:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return process


def _say(client: socket.socket, number: int) -> None:
    with suppress(OSError):
        client.sendall(NUMBER.pack(number))


def _is_alone() -> bool:
    """Whether this process has one thread: the others would be missing in a fork, with the locks that they hold."""
    return len(list(Path("/proc/self/task").iterdir())) == 1


# A forked process as the process of a job: its streams, folder, variables, signals and script.

PYTHONPATH = "PYTHONPATH"
"""Its folders come first in `sys.path` of a process that is started without a folder of its own."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl."""


@dataclass(frozen=True)
class Forked:
    """A job that runs in a forked process.

    Attributes:
        script: its path.
        folder: that it runs in.
        umask: of its files.
        ignored: numbers of signals that it ignores.
        variables: of its environment.
        streams: standard input, output and error.
    """

    script: str
    folder: bytes
    umask: int
    ignored: frozenset[int]
    variables: tuple[tuple[bytes, bytes], ...]
    streams: tuple[int, ...]

    @classmethod
    def of(cls, script: str, content: bytes, streams: tuple[int, ...], client: int) -> "Forked":
        """The job that a client's message describes."""
        folder, umask, ignored, *pairs = content.split(b"\0")
        variables = [(name, value) for name, _, value in (pair.partition(b"=") for pair in pairs)]
        variables.append((STARTED_BY.encode(), str(client).encode()))
        numbers = frozenset(int(number) for number in ignored.split(b",") if number)
        return cls(script, folder, int(umask), numbers, tuple(variables), streams)

    def close(self) -> None:
        """Close the streams in the process that has forked the job."""
        for stream in self.streams:
            os.close(stream)

    def end_with(self, parent: int) -> None:
        """Have this process killed when the one that has forked it is."""
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    def run(self) -> None:
        """Run the script as the process that `python SCRIPT` would be, and end that process after a success."""
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())
        of_imports = {name: value for name, value in os.environb.items() if name not in STARTED_WITH}
        os.environb.clear()
        os.environb.update(of_imports)
        os.environb.update(self.variables)
        os.umask(self.umask)
        os.chdir(self.folder)
        for number in PASSED_ON:
            usual: Any = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, signal.SIG_IGN if number in self.ignored else usual)
        _forget()
        sys.argv = [self.script]
        installed = [folder for folder in sys.path if folder not in SEARCHED]
        sys.path[:] = [str(Path(self.script).parent), *folders(os.environ.get(PYTHONPATH, "")), *installed]
        module = ModuleType("__main__")
        module.__file__, module.__builtins__ = self.script, builtins  # type: ignore[attr-defined]
        sys.modules["__main__"] = module
        code = compile(Path(self.script).read_bytes(), self.script, "exec")
        if not takes_signals(self.script):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
        exec(code, module.__dict__)
        _end(module)


def folders(text: str) -> list[str]:
    """Folders of a variable like PYTHONPATH."""
    return [str(Path(folder).absolute()) for folder in text.split(os.pathsep)] if text else []


SEARCHED = frozenset(folders(os.environ.get(PYTHONPATH, "")))
"""Folders of PYTHONPATH when this process was started."""


STARTED_WITH = frozenset(os.environb)
"""Names of its variables; libraries set further ones when they are imported."""


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


def _forget() -> None:
    """Give up the modules of the workflow, which a job imports itself, and the common state of random numbers."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()
