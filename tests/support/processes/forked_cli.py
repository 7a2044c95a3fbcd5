"""Command lines in processes that are forked from one, which has imported their libraries: each start costs no imports.

Nothing is shared but the imports: each command has its own process, folder, environment and arguments. As a script this
module is the process that forks: its arguments are its folder, its owner and the modules to import; it reads a request
from each connection and answers with an exit code.
"""

import atexit
import gc
import hashlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from support.processes.awaited import until_true
from support.processes.made_once import made_once

PROGRAMS = {"snakemake": "snakemake.cli", "brainfed": "brainfed.__main__"}
"""Name of a command -> the module whose function `main` it calls."""
LIBRARIES = (
    "snakemake.cli",
    "snakemake.workflow",
    "snakemake.dag",
    "snakemake.script",
    "snakemake.notebook",
    "smart_open",
    "nbformat.v4",
    "jsonschema",
    "packaging.version",
    "pandas",
    "pydantic.dataclasses",
)
"""What a start imports that is not of this project: a project under test may have its own copy of the workflow."""
OURS = (
    "brainfed.__main__",
    "brainfed.checking._images",
    "brainfed.configuration.layout._layout",
    "brainfed.configuration._outline",
)
SECONDS = 3600
"""After which a command is ended, as by `timeout`."""


class ForkedCommands:
    """Runs `snakemake` and `brainfed` with any arguments; all processes of a test run ask one that forks."""

    def __init__(self, imported: Sequence[str] = (*LIBRARIES, *OURS)) -> None:
        """Start that process, unless another has; it imports these modules while the first requests wait."""
        name = f"forks-{hashlib.sha256(repr(imported).encode()).hexdigest()[:8]}"
        # A socket's path is 100 characters at most.
        self._address = str((made_once(name, partial(_start, imported)) / "socket").resolve())

    def run(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and all printed text of a command in `folder`, with additions to the environment."""
        printed = folder / "printed.txt"
        printed.unlink(missing_ok=True)
        return self._ask(words, folder, environment, printed, printed), printed.read_text(encoding="utf-8")

    def run_apart(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        """The same with output and errors apart; `folder` holds nothing new afterwards."""
        with tempfile.TemporaryDirectory() as texts:
            output, errors = Path(texts) / "output", Path(texts) / "errors"
            code = self._ask(words, folder, environment, output, errors)
            return subprocess.CompletedProcess([*words], code, output.read_text("utf-8"), errors.read_text("utf-8"))

    def _ask(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path, errors: Path
    ) -> int:
        own = dict(os.environ) | dict(environment)
        files = {"output": str(output), "errors": str(errors)}
        request = {"words": [*words], "folder": str(folder), "environment": own} | files
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as answer:
                code = answer.readline()
        assert code, f"the process that forks ended before it answered {' '.join(words)}"
        return int(code)


def _start(imported: Sequence[str], folder: Path) -> None:
    folder.symlink_to(tempfile.mkdtemp(prefix="forks-", dir="/tmp"))
    owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    command = [sys.executable, "-m", "support.processes.forked_cli", folder.resolve(), str(owner), *imported]
    server = subprocess.Popen(command, cwd=Path(__file__).parents[2], start_new_session=True)
    until_true(lambda: (folder / "socket").exists() or server.poll() is not None)
    assert server.poll() is None, "the process that forks did not start"


def serve(folder: str, owner: str, *imported: str) -> None:
    """Answer requests at a socket in a folder until the owner, the process of the test run, has ended."""
    listener, place = socket.socket(socket.AF_UNIX), Path(folder) / "socket"
    # Bound under another name, as clients connect as soon as they see the file.
    listener.bind(f"{place}-new")
    listener.listen(64)
    Path(f"{place}-new").rename(place)
    del sys.path[0]  # That of the tests, in which commands look for nothing.
    for name in imported:
        import_module(name)
    # It looks for plugins and imports them.
    import_module("snakemake.cli").get_argument_parser()
    # A child's collector would copy every page that holds an object.
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while psutil.pid_exists(int(owner)):
        if select.select([listener], [], [], 1.0)[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                _answer(connection)
            connection.close()
    shutil.rmtree(folder)


def _answer(connection: socket.socket) -> None:
    """Fork the command, and send its exit code when it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile() as asked:
        request = json.loads(asked.readline())
    child = os.fork()
    if child == 0:
        connection.close()
        _become(request)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(BrokenPipeError):
        connection.sendall(b"%d\n" % code)
    os._exit(0)


def _become(request: Mapping[str, Any]) -> None:
    """Run the command in this process, and end it."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, path in ((1, request["output"]), (2, request["errors"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    signal.alarm(SECONDS)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:0] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    program, *arguments = request["words"]
    sys.argv = [program, *arguments]
    code: Any = 1
    try:
        code = import_module(PROGRAMS[program]).main(arguments)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # What a process prints or writes at its end.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code or 0))


if __name__ == "__main__":
    serve(*sys.argv[1:])
