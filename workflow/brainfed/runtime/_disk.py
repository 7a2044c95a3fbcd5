"""A full disk: how it is recognised, and the sentence that reports it."""

import errno
import fcntl
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from brainfed.runtime._errors import UserError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FullDiskError(UserError):
    """No room for a file; no part of it is left."""


def is_full(error: BaseException) -> bool:
    """Whether an exception means that there is no room left on a disk, or in a quota.

    Libraries that write by themselves give the number of the error in their message alone (safetensors).
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        match = re.search(r"\(os error (\d+)\)", str(error))
        number = int(match[1]) if match else None
    return number in FULL


def full_disk(path: Path, needed: int, written: int) -> FullDiskError:
    """The sentence about a file that did not fit.

    Args:
        path: of the file, which is not there.
        needed: its size in bytes, 0 where it is unknown.
        written: bytes that did fit; they have been removed.
    """
    standing = next(folder for folder in path.absolute().parents if folder.exists())
    if _holds_no_more_files(standing):
        return FullDiskError(
            f"{path}: there is no room for this file, as {_mount(standing)} holds as many files as it can (all inodes "
            "are taken, whatever `df -h` says; see `df -i`); remove files that you do not need, or move the folder to "
            "another disk and leave a link in its place, then run the same command again: it goes on from what is "
            "finished."
        )
    free = shutil.disk_usage(standing).free
    more = f"more than {_mebibytes(written)}" if written else ""
    size = _mebibytes(needed) if needed else more
    needs = f"it needs {size}, " if size else ""
    return FullDiskError(
        f"{path}: there is no room for this file, {needs}{_mebibytes(free)} are free in {_mount(standing)} "
        f"(or your quota there is used up); make room, or move the folder to a larger disk and leave a link in its "
        f"place, then run the same command again: it goes on from what is finished."
    )


def _holds_no_more_files(folder: Path) -> bool:
    """Whether the number of files is what is used up; some file systems have no such number."""
    disk = os.statvfs(folder)
    return disk.f_files > 0 and disk.f_favail == 0


def _mebibytes(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB" if size >= 1024**2 // 10 else f"{size / 1024:,.1f} KiB"


def _mount(folder: Path) -> Path:
    """The root of the file system that a folder is in."""
    return next(place for place in (folder, *folder.parents) if os.path.ismount(place))


# Locks on folders where one process at a time may write; the system drops those of a process that ends.


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
