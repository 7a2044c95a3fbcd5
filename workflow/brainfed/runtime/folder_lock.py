"""Locks on folders where one process at a time may write; the system drops those of a process that ends."""

import fcntl
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from brainfed.runtime.errors import UserError


@contextmanager
def folder_lock(lock: Path, what: str, remedy: str) -> Iterator[None]:
    """Hold a lock while the body runs.

    A folder in which nothing can be written is not locked. Where the disk keeps no locks, or keeps them for one machine
    alone and a process of another may run, a sentence on stderr says so.

    Args:
        lock: a file that is made where it is missing, and stays; it names its holder.
        what: what holds it, in the sentence that refuses a second one: "`brainfed join` in this folder".
        remedy: what to do then.

    Raises:
        UserError: another process holds it.
    """
    file = _opened(lock)
    if file is None:
        yield
        return
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{lock.parent}: expected no other {what}, found one that runs ({_holder(file) or 'unknown'}); "
                f"{remedy}."
            ) from error
        except OSError as error:
            _say(f"{lock}: this disk keeps no locks ({error.strerror}); make sure that no other {what} runs.")
        else:
            earlier = _holder(file)
            if earlier and not earlier.startswith(_here()):
                _say(
                    f"{lock}: a run {earlier} did not give the lock back; if this disk keeps locks for one machine "
                    "alone, make sure that it has ended."
                )
        with suppress(OSError):
            file.truncate(0)
            file.write(f"{_here()} {os.getpid()} in {Path.cwd()}")
            file.flush()
        try:
            yield
        finally:
            with suppress(OSError):
                file.truncate(0)
                # A forked child may still have the file open: closing it here alone would not unlock.
                fcntl.flock(file, fcntl.LOCK_UN)


def _opened(lock: Path) -> IO[str] | None:
    """The file; one of another user is opened for reading, which is enough for a lock."""
    for mode in ("a+", "r"):
        try:
            return lock.open(mode, encoding="utf-8", errors="replace")
        except OSError:
            continue
    return None


def _here() -> str:
    return f"on {platform.node()}: process"


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
