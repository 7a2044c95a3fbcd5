"""The forking process of a run and its further nodes: they have imported what the jobs that they fork import.

    python -P -m brainfed.forking.server OWNER-WORD

It gives the job of each client to one of its nodes. A node has imported modules that the job is certain to import, and
none besides, so that the record of a job names the libraries that it would have named. It ends with its owner, the
process of the run, and jobs that are left end with their clients.
"""

import gc
import importlib
import importlib.util
import os
import re
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path

from brainfed.forking._forked import SEARCHED, Forked, folders
from brainfed.forking._imports import certain_imports
from brainfed.forking.client import BETWEEN, NUMBER, PASSED_ON, READY, address, owner_of, peer

# A process that forks jobs, and further nodes, of what it has imported.

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


def _asked_for(client: socket.socket, script: str) -> Forked | None:
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


# The forking process of a run: jobs are forked from a process that has imported what they import.

FIRST = ("ctypes", "snakemake.iocontainers", "snakemake.logging")
"""What a node, and every script of Snakemake, imports."""
ARTEFACTS = frozenset({"numpy", "pandas", "pyarrow.parquet", "safetensors"})
LAYERS = (ARTEFACTS, ARTEFACTS | {"torch"})
"""Nodes of which others are forked: what nearly all jobs import, and what takes longest."""
FEWEST, MOST = 6, 24
"""Nodes that are kept besides the layers: one has about 100 MB of its own, and a run imports two dozen sets."""
SHARE = 0.1
"""Of the memory that is available at the start, for nodes."""
OF_A_NODE = 100 << 20
"""Bytes."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the bytes that a container may use."""
TRIES = 3
"""To find a node that lives."""
LINE_S = 1.0
"""For a client to name its script."""
NO_CUDA = re.compile(r"^cuda\b[^=\n]*= *None", re.MULTILINE)


def main() -> None:
    """Serve until the owner ends; in a forked job, run its script."""
    (name,) = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(address(name))
        ended = os.pidfd_open(int(owner_of(name)))
    except OSError:
        return
    # A signal to all processes is for the jobs, whose clients pass it on.
    for number in PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir("/")
    listener.listen(128)
    for module in FIRST:
        importlib.import_module(module)
    role: Node | Forked | None = Server(listener, ended).serve()
    while isinstance(role, Node):
        role = role.serve()
    if role is None:
        os._exit(0)  # Python would first take down all that was imported.
    role.run()


class Server:
    """Gives every job to a node, and forks nodes.

    Args:
        listener: of clients.
        ended: pidfd of the owner.
    """

    def __init__(self, listener: socket.socket, ended: int) -> None:
        self._listener, self._ended = listener, ended
        self._most = most_nodes(_available_bytes())
        self._nodes: dict[frozenset[str], socket.socket] = {}

    def serve(self) -> Node | None:
        """Route jobs until the owner or the first node ends; in the process of that node, return the node."""
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not os.fork():
            self._listener.close()
            own.close()
            os.close(self._ended)
            return Node(its)
        its.close()
        self._nodes[frozenset()] = own
        with selectors.DefaultSelector() as selector:
            for source in (self._listener, self._ended):
                selector.register(source, selectors.EVENT_READ)
            while frozenset() in self._nodes and not any(key.fileobj == self._ended for key, _ in selector.select()):
                with suppress(OSError):
                    connection, _ = self._listener.accept()
                    with connection:
                        self._route(connection)
        return None

    def _route(self, connection: socket.socket) -> None:
        """Give a client to a node; one that is refused runs its script by itself."""
        if peer(connection)[1] != os.getuid():
            return
        try:
            connection.settimeout(LINE_S)
            script, _, searched = _line(connection).partition(BETWEEN)
            imports = _without_cuda(certain_imports(Path(script)))
            first = set(folders(searched)) - SEARCHED
        except (OSError, ValueError):
            return
        # What runs at the start of a Python would not run in a fork.
        if any(os.path.exists(f"{at}/{name}.py") for at in first for name in ("sitecustomize", "usercustomize")):
            return
        imports = _not_shadowed(imports, first)
        message = JOB + script.encode("utf-8", "surrogateescape")
        for _ in range(TRIES):
            if frozenset() not in self._nodes:
                return
            try:
                socket.send_fds(self._node(imports), [message], [connection.fileno()])
                return
            except OSError:  # The node has been killed.
                self._nodes = {known: node for known, node in self._nodes.items() if not _is_closed(node)}

    def _node(self, imports: frozenset[str]) -> socket.socket:
        """The node that has imported these modules."""
        for wanted in (*LAYERS, imports):
            if wanted <= imports and wanted not in self._nodes:
                self._make(wanted)
        self._nodes[imports] = node = self._nodes.pop(imports)
        return node

    def _make(self, imports: frozenset[str]) -> None:
        """Have the node with most of these imports fork one that has them all."""
        passing = [known for known in self._nodes if known and known not in LAYERS]
        if len(passing) >= self._most:
            self._nodes.pop(passing[0]).close()
        best = max((known for known in self._nodes if known <= imports), key=len)
        own, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            names = "\0".join(sorted(imports - best)).encode()
            socket.send_fds(self._nodes[best], [NODE + names], [its.fileno()])
        self._nodes[imports] = own


def most_nodes(available: int) -> int:
    """Number of nodes for so many bytes of memory."""
    return min(max(int(SHARE * available) // OF_A_NODE, FEWEST), MOST)


def _available_bytes() -> int:
    """Memory that the machine can give, of a container at most its limit; 0 where it does not say."""
    stated = re.search(r"^MemAvailable: *(\d+) kB", _text("/proc/meminfo"), re.MULTILINE)
    limits = (int(text) for path in LIMITS if (text := _text(path).strip()).isdecimal())
    return min(int(stated[1]) << 10 if stated else 0, *limits, sys.maxsize)


def _text(path: str) -> str:
    try:
        return Path(path).read_text("ascii")
    except OSError:
        return ""


def _is_closed(node: socket.socket) -> bool:
    """Whether nobody is at the other end."""
    try:
        return node.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _line(connection: socket.socket) -> str:
    line = b""
    while not line.endswith(b"\n"):
        more = connection.recv(1)
        if not more:
            raise OSError("the client has gone")
        line += more
    return line[:-1].decode("utf-8", "surrogateescape")


def _not_shadowed(imports: frozenset[str], first: Collection[str]) -> frozenset[str]:
    """The imports without packages that a job finds in folders of its own before those of this process."""
    roots = {name.partition(".")[0] for name in imports}
    own = {root for root in roots for at in first if any(map(os.path.exists, (f"{at}/{root}", f"{at}/{root}.py")))}
    return frozenset(name for name in imports if name.partition(".")[0] not in own)


def _without_cuda(imports: frozenset[str]) -> frozenset[str]:
    """The imports without torch where that computes on GPUs: a driver's state does not survive a fork."""
    spec = importlib.util.find_spec("torch")
    if spec is None or _is_plain(spec):
        return imports
    return frozenset(name for name in imports if not name.startswith("torch"))


def _is_plain(spec: ModuleSpec) -> bool:
    folders: Collection[str] = spec.submodule_search_locations or ()
    return any(NO_CUDA.search(Path(folder, "version.py").read_text(encoding="utf-8")) for folder in folders)


if __name__ == "__main__":
    main()
