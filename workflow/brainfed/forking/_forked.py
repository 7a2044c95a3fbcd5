"""A forked process as the process of a job: its streams, folder, variables, signals and script."""

import atexit
import builtins
import ctypes
import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from brainfed.forking._imports import PACKAGE
from brainfed.forking.client import PASSED_ON, STARTED_BY, takes_signals

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
