"""The server of a run, and its nodes: processes that have imported what the jobs that they fork import.

    python -P -m brainfed.forking.server OWNER-WORD

It gives the job of each client to a node that has imported modules that the job is certain to import, and none
besides, so that the record of a job names the libraries that it would have named. It ends with its owner, the process
of the run.
"""

import importlib
import importlib.util
import os
import re
import select
import signal
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from brainfed.forking._node import JOB, PACKAGE, SEARCHED, WORDS_S, folders, serve
from brainfed.forking.client import LONGEST, PASSED_ON, address, is_own, owner_of

FIRST = ("ctypes", "snakemake.iocontainers", "snakemake.logging")
"""What a node, and every script of Snakemake, imports."""
ARTEFACTS = frozenset({"numpy", "pandas", "pyarrow.parquet", "safetensors"})
LAYERS = (ARTEFACTS, ARTEFACTS | {"torch"})
"""Nodes of which others are forked: what nearly all jobs import, and what takes longest."""
FEWEST, MOST = 6, 24
"""Nodes that are kept besides the layers; a run imports two dozen sets."""
FOR_A_NODE = 1000 << 20
"""Bytes of the memory that is available at the start; a node has a tenth of that for its own."""
LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Files with the bytes that a container may use."""
NO_CUDA = re.compile(r"^cuda\b[^=\n]*= *None", re.MULTILINE)


def main() -> None:
    """Give jobs to nodes until the owner ends; in the process of a job, run its script."""
    (name,) = sys.argv[1:]
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(address(name))
        ended = os.pidfd_open(int(owner_of(name)))
    except OSError:
        return
    # A signal to all processes is for the jobs, whose clients pass it on; jobs begin with them blocked.
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.chdir("/")
    listener.listen(128)
    for module in FIRST:
        with suppress(ImportError):
            importlib.import_module(module)
    first, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        its.close()
        Server(listener, first).serve(ended)
    else:
        for other in (listener.detach(), first.detach(), ended):
            os.close(other)
        serve(its)


class Server:
    """Gives every job to a node, and has nodes forked.

    Args:
        listener: of clients.
        first: the node with what every job imports.
    """

    def __init__(self, listener: socket.socket, first: socket.socket) -> None:
        self._listener = listener
        self._most = most_nodes(_available_bytes())
        self._nodes = {frozenset[str](): first}

    def serve(self, ended: int) -> None:
        """Route jobs until the owner, a pidfd, or the first node ends."""
        while frozenset() in self._nodes and ended not in select.select((self._listener.fileno(), ended), (), ())[0]:
            with suppress(OSError, ValueError):
                connection, _ = self._listener.accept()
                with connection:
                    self._route(connection)

    def _route(self, connection: socket.socket) -> None:
        """Give a client to a node; one that is refused runs its script by itself."""
        if not is_own(connection):
            return
        connection.settimeout(WORDS_S)
        script, _, searched = os.fsdecode(connection.recv(LONGEST)).partition("\0")
        first = set(folders(searched)) - SEARCHED
        # What runs at the start of a Python would not run in a fork.
        if _holds(first, "sitecustomize.py", "usercustomize.py"):
            return
        # A package in the job's own folders comes before those of this process.
        roots = {name: name.partition(".")[0] for name in _without_cuda(certain_imports(Path(script)))}
        imports = frozenset(name for name, root in roots.items() if not _holds(first, root, f"{root}.py"))
        for _ in range(3):
            if frozenset() not in self._nodes:
                return
            try:
                socket.send_fds(self._node(imports), [JOB], [connection.fileno()])
                return
            except OSError:  # A node has been killed: they send nothing, so its end is what can be read.
                closed, _, _ = select.select(list(self._nodes.values()), (), (), 0)
                self._nodes = {known: node for known, node in self._nodes.items() if node not in closed}

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
            socket.send_fds(self._nodes[best], ["\0".join(sorted(imports - best)).encode()], [its.fileno()])
        self._nodes[imports] = own


def most_nodes(available: int) -> int:
    """Number of nodes for so many bytes of memory."""
    return min(max(available // FOR_A_NODE, FEWEST), MOST)


def _available_bytes() -> int:
    """Memory that the machine can give, of a container at most its limit; 0 where it does not say."""
    texts = []
    for path in ("/proc/meminfo", *LIMITS):
        with suppress(OSError):
            texts.append(Path(path).read_text("ascii"))
    stated = re.search(r"^MemAvailable: *(\d+) kB", "".join(texts), re.MULTILINE)
    limits = (int(text) for text in texts if text.strip().isdecimal())
    return min(int(stated[1]) << 10 if stated else 0, *limits, sys.maxsize)


def _holds(places: Iterable[str], *names: str) -> bool:
    return any(os.path.exists(f"{at}/{name}") for at in places for name in names)


def _without_cuda(imports: frozenset[str]) -> frozenset[str]:
    """The imports without torch where that computes on GPUs: a driver's state does not survive a fork."""
    spec = importlib.util.find_spec("torch")
    texts = [Path(at, "version.py").read_text("utf-8") for at in (spec and spec.submodule_search_locations) or ()]
    return imports if any(map(NO_CUDA.search, texts)) else frozenset(n for n in imports if not n.startswith("torch"))


# What a script is certain to import: import statements at the top of it, and at the top of what it imports.
#
# Imports inside functions may not run, and are left out. So whatever is found is what the script imports by itself, and
# a process that has imported it before holds nothing that the script does not. A name from the door of a package leads
# to the module that defines it, as the stub beside the door says.

STATEMENT = r"(?:from|import) +([\w.]+)(?: +import +(\([^)]*\)|.*))?"
AT_THE_TOP = re.compile(f"^{STATEMENT}", re.MULTILINE)
IN_A_SCRIPT = re.compile(f"^(?: {{4}})?{STATEMENT}", re.MULTILINE)
"""At its top, or in the one `with` block that is all of it."""
ENTRY = re.compile(rf"({PACKAGE}(?:\.\w+)+):(\w+)")
"""An entry point in the parameters, which stand in a script of Snakemake."""
OFFERED = re.compile(r"^from \.(\w+) import (\([^)]*\)|.*)", re.MULTILINE)
"""A statement of a stub."""
HERE = Path(__file__).resolve().parents[2]


def certain_imports(script: Path) -> frozenset[str]:
    """Modules of other packages that the script imports.

    Args:
        script: as Snakemake writes it, with the parameters of the job.
    """
    text = script.read_text(encoding="utf-8")
    modules, seen = set(), set[str]()
    waiting = [*_modules(IN_A_SCRIPT, text), *_modules(ENTRY, text)]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        root = name.partition(".")[0]
        if root == PACKAGE:
            waiting += _imported_by(name)
        elif root not in sys.stdlib_module_names:
            modules.add(name)
    return frozenset(modules)


def _modules(statement: re.Pattern[str], text: str) -> Iterator[str]:
    """The modules that statements name, and those behind doors that define what they name."""
    for module, names in statement.findall(text):
        yield module
        if module.startswith(PACKAGE):
            offered = _offered(module)
            yield from (offered[name] for name in re.findall(r"(?<!\bas )\b\w+", names) if name in offered)


@cache
def _offered(door: str) -> Mapping[str, str]:
    """Name -> the module behind a door that defines it; empty where there is no door."""
    stub = HERE.joinpath(*door.split("."), "__init__.pyi")
    statements = OFFERED.findall(stub.read_text(encoding="utf-8")) if stub.is_file() else ()
    return {name: f"{door}.{module}" for module, names in statements for name in re.findall(r"\w+", names)}


@cache
def _imported_by(name: str) -> tuple[str, ...]:
    """What a module of this package and its parents import at their top."""
    names: list[str] = []
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = HERE.joinpath(*parts[:length])
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                names += _modules(AT_THE_TOP, file.read_text(encoding="utf-8"))
    return tuple(names)


if __name__ == "__main__":
    main()
