"""The forking process of a run: jobs are forked from a process that has imported what they import.

    python -P -m brainfed.runtime.forking.server OWNER-WORD

It gives the job of each client to one of its nodes. A node has imported modules that the job is certain to import, and
none besides, so that the record of a job names the libraries that it would have named. It ends with its owner, the
process of the run, and jobs that are left end with their clients.
"""

import importlib
import importlib.util
import os
import re
import selectors
import signal
import socket
import sys
from collections.abc import Collection
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path

from brainfed.runtime.forking._forked import SEARCHED, Forked, folders
from brainfed.runtime.forking._imports import certain_imports
from brainfed.runtime.forking._node import JOB, NODE, Node
from brainfed.runtime.forking.client import BETWEEN, PASSED_ON, address, owner_of, peer

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
    found: Node | Forked | None = Server(listener, ended).serve()
    while isinstance(found, Node):
        found = found.serve()
    if found is None:
        os._exit(0)  # Python would first take down all that was imported.
    found.run()


class Server:
    """Gives jobs to nodes.

    Args:
        listener: of clients.
        ended: pidfd of the owner.
    """

    def __init__(self, listener: socket.socket, ended: int) -> None:
        self._listener, self._ended = listener, ended
        self._most = most_nodes(_available_bytes())
        self._nodes: dict[frozenset[str], socket.socket] = {}

    def serve(self) -> Node | None:
        """Route until the owner, or the first node, ends; that node, in its process."""
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
        self._nodes[imports] = found = self._nodes.pop(imports)
        return found

    def _make(self, imports: frozenset[str]) -> None:
        """Fork a node of the one that has most of its imports."""
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
