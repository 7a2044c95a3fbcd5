"""Files on a disk: parts until they are whole, the sentence about a full disk, and one writer at a time in a folder."""

import errno
import fcntl
import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from brainfed.runtime._errors import UserError

DAY = 86400.0
PART = re.compile(r"\.(?P<name>.+)\.(?P<host>[^.]*)\.(?P<pid>\d+)\.[0-9a-f]{8}\.part")
"""Names hold host and process, so that parts of killed processes can be deleted."""


def part_of(target: Path) -> Path:
    """A new hidden path beside `target`, to write to until the file is whole."""
    return target.with_name(f".{target.name}.{_host()}.{os.getpid()}.{os.urandom(4).hex()}.part")


def write_whole(path: Path, text: str) -> None:
    """Write a small text file, a record beside results or a cache between runs, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(path)
    written = part_of(path)
    try:
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def being_written(path: Path) -> bool:
    """Whether a file is a part that a process may still be writing.

    Processes of another host cannot be seen here: their parts count as left over a day after their last change, by the
    clock of the file system.
    """
    part = PART.fullmatch(path.name)
    if not part:
        return False
    return _lives(int(part["pid"])) if part["host"] == _host() else _age(path) <= DAY


def remove_left_over(target: Path) -> None:
    """Delete the parts of `target` that ended processes left."""
    for path in _begun(target.parent.absolute()).get(target.name, ()):
        if not being_written(path):
            path.unlink(missing_ok=True)


@cache
def _begun(folder: Path) -> dict[str, list[Path]]:
    """Name of a file -> its parts when this process first looked into the folder."""
    parts: dict[str, list[Path]] = {}
    for path in folder.glob(".*.part"):
        if part := PART.fullmatch(path.name):
            parts.setdefault(part["name"], []).append(path)
    return parts


@cache
def _host() -> str:
    return re.sub(r"[^\w-]", "-", platform.node())


def _lives(pid: int) -> bool:
    """Whether the process runs here; a zombie does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        # Another user's, or there is no /proc.
        return True


def _age(path: Path) -> float:
    """Seconds since the last change, by the time of a new file beside it; 0 where none can be written."""
    clock = part_of(path.with_name("clock"))
    try:
        clock.touch()
        try:
            return clock.stat().st_mtime - path.stat().st_mtime
        finally:
            clock.unlink()
    except OSError:
        return 0.0


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
    return number in (errno.ENOSPC, errno.EDQUOT)


def full_disk(path: Path, needed: int, written: int) -> FullDiskError:
    """The sentence about a file that did not fit.

    Args:
        path: of the file, which is not there.
        needed: its size in bytes, 0 where it is unknown.
        written: bytes that did fit; they have been removed.
    """
    standing = next(folder for folder in path.absolute().parents if folder.exists())
    mount = next(place for place in (standing, *standing.parents) if os.path.ismount(place))
    disk = os.statvfs(standing)
    # Some file systems have no number of files.
    if disk.f_files > 0 and disk.f_favail == 0:
        return FullDiskError(
            f"{path}: there is no room for this file, as {mount} holds as many files as it can (all inodes "
            "are taken, whatever `df -h` says; see `df -i`); remove files that you do not need, or move the folder to "
            "another disk and leave a link in its place, then run the same command again: it goes on from what is "
            "finished."
        )
    free = _mebibytes(disk.f_bavail * disk.f_frsize)
    more = f"more than {_mebibytes(written)}" if written else ""
    size = _mebibytes(needed) if needed else more
    needs = f"it needs {size}, " if size else ""
    return FullDiskError(
        f"{path}: there is no room for this file, {needs}{free} are free in {mount} "
        f"(or your quota there is used up); make room, or move the folder to a larger disk and leave a link in its "
        f"place, then run the same command again: it goes on from what is finished."
    )


def _mebibytes(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB" if size >= 1024**2 // 10 else f"{size / 1024:,.1f} KiB"


@contextmanager
def folder_lock(lock: Path, what: str, remedy: str) -> Iterator[None]:
    """Hold a lock on a folder where one process at a time may write; the system drops that of a process that ends.

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
        with suppress(OSError):
            return lock.open(mode, encoding="utf-8", errors="replace")
    return None


def _here() -> str:
    return f"on {platform.node()}: process"


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip()


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
