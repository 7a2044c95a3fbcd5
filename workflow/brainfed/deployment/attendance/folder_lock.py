"""One `brainfed join` in a folder: a second one would answer with the same key, and write the same files."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from brainfed.runtime.errors import UserError


@contextmanager
def folder_lock(lock: Path) -> Iterator[None]:
    """Hold a lock while the body runs; the system drops it when the process ends, however it ends.

    Args:
        lock: a file that is made where it is missing, and stays. A disk that knows no locks holds nobody up.

    Raises:
        UserError: another process holds it.
    """
    with lock.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise UserError(
                f"{lock.parent}: expected no other `brainfed join` in this folder, found one that runs (process "
                f"{file.read().strip() or 'unknown'}); stop it, or leave it running and do not start a second."
            ) from error
        except OSError:
            pass
        with suppress(OSError):
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield
