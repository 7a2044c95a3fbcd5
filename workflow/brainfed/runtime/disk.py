"""A full disk: how it is recognised, and the sentence that reports it."""

import errno
import os
import re
import shutil
from pathlib import Path

from brainfed.runtime.errors import UserError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class FullDiskError(UserError):
    """No room for a file; no part of it is left."""


def is_full(error: BaseException) -> bool:
    """Whether an exception means that there is no room left on a disk, or in a quota.

    Libraries that write by themselves give the number of the error in their message alone (safetensors).
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        found = re.search(r"\(os error (\d+)\)", str(error))
        number = int(found[1]) if found else None
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
    found = os.statvfs(folder)
    return found.f_files > 0 and found.f_favail == 0


def _mebibytes(size: int) -> str:
    return f"{size / 1024**2:,.1f} MiB" if size >= 1024**2 // 10 else f"{size / 1024:,.1f} KiB"


def _mount(folder: Path) -> Path:
    """The root of the file system that a folder is in."""
    return next(place for place in (folder, *folder.parents) if os.path.ismount(place))
