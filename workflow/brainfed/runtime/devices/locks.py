"""Locks on files: the kernel releases them when the process that holds them ends, however it ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brainfed.runtime.disk import is_full
from brainfed.runtime.errors import UserError

TEMPORARY = Path("/tmp")


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the file's lock: True, or False where another process has it (never when waiting for it).

    Raises:
        UserError: the file cannot be opened, for example another user's in a shared folder.
    """
    try:
        file = path.open("a")
    except OSError as error:
        if is_full(error):
            raise
        raise UserError(
            f"{path}: this lock file of a GPU cannot be opened ({error.strerror}); name a folder of your own in "
            "BRAINFED_LOCKS, or unset it."
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        try:
            yield True
        finally:
            # A forked child may still have the file open: closing it here alone would not unlock.
            fcntl.flock(file, fcntl.LOCK_UN)


def is_free(path: Path) -> bool:
    """Whether no process holds the file's lock."""
    with locked(path) as free:
        return free


def lock_folder(named: Path | None = None) -> Path:
    """The folder of the GPUs' lock files, made if need be.

    It is on this machine, as the devices are: `named`, else BRAINFED_LOCKS, else a folder of this user
    under /tmp, whatever TMPDIR says: two workflows with temporary folders of their own share the devices.

    Raises:
        UserError: nothing can be written there, or the default folder belongs to another user.
    """
    chosen = named or os.environ.get("BRAINFED_LOCKS")
    own = TEMPORARY / f"brainfed-{os.getuid()}"
    folder = Path(chosen) if chosen else own / "gpu"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK) and (bool(chosen) or own.lstat().st_uid == os.getuid())
    except OSError:
        usable = False
    if not usable:
        raise UserError(f"{folder}: lock files of GPUs cannot be kept here; name another folder in BRAINFED_LOCKS.")
    return folder
