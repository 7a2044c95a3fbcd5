"""Files that are being written: their names hold host and process, so that parts of killed processes can be deleted."""

import os
import platform
import re
from functools import cache
from pathlib import Path

DAY = 86400.0
PART = re.compile(r"\.(?P<name>.+)\.(?P<host>[^.]*)\.(?P<pid>\d+)\.[0-9a-f]{8}\.part")


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
