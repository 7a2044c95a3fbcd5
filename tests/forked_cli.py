"""Command lines in processes that are forked from one, which has imported their libraries: each start costs no imports.

Nothing is shared but the imports: each command has its own process, folder, environment and arguments. As a script this
module is the process that forks: it reads one request a line from its input and answers each with an exit code.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

PROGRAMS = {"snakemake": "snakemake.cli", "brainfed": "brainfed.__main__"}
"""Name of a command -> the module whose function `main` it calls."""
IMPORTED = (
    *PROGRAMS.values(),
    "snakemake.workflow",
    "snakemake.dag",
    "brainfed.configuration.layout.layout",
    "brainfed.configuration.outline.report",
    "pandas",
)
SECONDS = 300
"""After which a command is ended, as by `timeout`."""


class ForkedCommands:
    """Runs `snakemake` and `brainfed` with any arguments; `close` ends the process that forks."""

    def __init__(self) -> None:
        """Start it; it imports while the first request waits."""
        self._server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> tuple[int, str]:
        """Exit code and all printed text of a command in `folder`, with additions to the environment."""
        printed = folder / "printed.txt"
        own = dict(os.environ) | dict(environment)
        request = {"words": [*words], "folder": str(folder), "environment": own, "printed": str(printed)}
        assert self._server.stdin is not None and self._server.stdout is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return code, printed.read_text(encoding="utf-8")

    def close(self) -> None:
        """End the process."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


def serve() -> None:
    """Answer requests until the input ends."""
    for name in IMPORTED:
        import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(request: Mapping[str, Any]) -> None:
    """Run the command in this process, and end it."""
    file = os.open(request["printed"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(file, 1)
    os.dup2(file, 2)
    signal.alarm(SECONDS)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(code or 0))


if __name__ == "__main__":
    serve()
