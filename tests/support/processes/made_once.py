"""Folders that one process of a test run makes, and all of them read."""

import atexit
import fcntl
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

_kept: dict[str, Path] = {}


def keep_below(base: Path) -> None:
    """Keep these folders where all processes of the test run find them."""
    _kept["base"] = base


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder of that name, which `make` fills unless another process has done so: to be read only."""
    base = _kept.get("base") or _of_this_process()
    folder, made = base / name, base / f"{name}-made"
    with (base / f"{name}-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            made.touch()
    return folder


@cache
def _of_this_process() -> Path:
    """Outside of a test run a folder of this process, which goes with it."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
