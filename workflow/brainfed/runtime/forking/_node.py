"""A process that forks jobs, and further nodes, of what it has imported."""

import gc
import importlib
import os
import selectors
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from brainfed.runtime.forking._forked import Forked
from brainfed.runtime.forking.client import NUMBER, PASSED_ON, READY, peer

JOB, NODE = b"j", b"n"
"""Kinds of messages: a client with its script, and the socket of a further node with what it imports besides."""
LONGEST = 1 << 16
"""Bytes of a message."""
WORDS_S = 1.0
"""For a client to send the words of its job."""


@dataclass
class Node:
    """Forks until nobody can ask it any more and its jobs have ended.

    Attributes:
        intake: messages of the server.
    """

    intake: socket.socket
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector, init=False)
    _jobs: dict[int, tuple[int, socket.socket]] = field(default_factory=dict, init=False)
    _nodes: list[int] = field(default_factory=list, init=False)

    def serve(self) -> "Node | Forked | None":
        """What a forked process is, in that process; None: this one has ended."""
        self._selector.register(self.intake, selectors.EVENT_READ)
        gc.collect()
        gc.freeze()
        while self._selector.get_map():
            for key, _ in self._selector.select():
                if key.fileobj is self.intake:
                    found = self._hear()
                    if found is not None:
                        return found
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

    def _fork_job(self, client: socket.socket, script: str) -> Forked | None:
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
        """Signals of a client; one that has gone takes its job along."""
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
        """Give up, in a forked process, what belongs to the node."""
        self._selector.close()
        self.intake.close()
        for ended, (_, client) in self._jobs.items():
            os.close(ended)
            client.close()


def _asked_for(client: socket.socket, script: str) -> Forked | None:
    """The job of a client; None: it has gone, or is too slow."""
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
    """As `os.fork`; None: there can be no further process. Signals wait until a job can take them."""
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
