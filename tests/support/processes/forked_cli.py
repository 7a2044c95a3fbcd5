"""Command lines in processes that are forked from one, which has imported their libraries: each start costs no imports.

Nothing is shared but the imports: each command has its own process, folder, environment and arguments. As a script this
module is the process that forks: its arguments are the modules to import, it reads one request a line from its input
and answers each with an exit code.
"""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

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
    "brainfed.checking.found_cohorts",
    "brainfed.configuration.layout.layout",
    "brainfed.configuration.outline.report",
)
SECONDS = 3600
"""After which a command is ended, as by `timeout`."""


class ForkedCommands:
    """Runs `snakemake` and `brainfed` with any arguments; `close` ends the process that forks."""

    def __init__(self, imported: Sequence[str] = (*LIBRARIES, *OURS)) -> None:
        """Start it; it imports these modules while the first request waits."""
        command = [sys.executable, __file__, *imported]
        self._server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

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
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


def serve() -> None:
    """Answer requests until the input ends."""
    for name in sys.argv[1:]:
        import_module(name)
    if "snakemake.cli" in sys.argv:
        # It looks for plugins and imports them.
        import_module("snakemake.cli").get_argument_parser()
    # A child's collector would copy every page that holds an object.
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


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
    serve()
