"""Digests of files' contents, taken again only where the file system shows that a file may have changed.

The mtime can be set to anything (`touch -d`, `cp -p`, `rsync -a`), the time at which the file system noted a change
(ctime) cannot. So a file with the size, both times and the inode that it had still has the content that it had.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path

from brainfed.runtime import write_whole

Signature = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in ns, inode; for a folder the sum, the latest and a check sum over its files."""


@dataclass(frozen=True)
class Content:
    """The digest of a file, and the signature that the file had when it was taken.

    Attributes:
        digest: SHA-256 as 64 hexadecimal characters; empty where the content changed during a job.
        signature: see `Signature`.
    """

    digest: str
    signature: Signature


LARGE = 10**9
"""Size in bytes above which Snakemake compares times alone, as our profiles have it."""
SKEW_S = 60.0
"""How far the clock of a network disk may be ahead without a word, in seconds."""
UNKNOWN = Content("", (0, 0, 0, 0))
"""The content of a file that changed during a job, or that is none."""


def signature(path: str | Path) -> Signature | None:
    """The signature of a file (the target of a link) or of a folder; None where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116, as it is asked for every scan at every start
        if stat.S_ISDIR(status.st_mode):
            return _of_folder(Path(path))
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def dated_ahead(paths: Iterable[str]) -> str:
    """A sentence on files that are dated after now, by a machine whose clock is ahead; empty where there are none."""
    now = time.time()
    dated = ((path, stamp[1] / 1e9, stamp[0]) for path in paths if (stamp := signature(path)))
    ahead = [(path, when, size) for path, when, size in dated if when > now + SKEW_S]
    if not ahead:
        return ""
    path, when, _ = ahead[0]
    large = [each for each, _, size in ahead if size > LARGE]
    until = f" Until then every start runs the jobs again that read {large[0]}, of more than 1 GB." if large else ""
    number = f"{len(ahead)} files are" if len(ahead) > 1 else "1 file is"
    return (
        f"{number} dated after now, the first is {path}: expected a date up to {_as_date(now)}, found "
        f"{_as_date(when)}; `touch` {'them' if len(ahead) > 1 else 'it'}, or set this machine's clock.{until}"
    )


def content_digest(path: str | Path) -> str:
    """SHA-256 of a file's content; of a folder, of the names and contents of its files."""
    if Path(path).is_dir():
        lines = (f"{file.relative_to(path).as_posix()} {content_digest(file)}\n" for file in _files(Path(path)))
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content(path: str | Path) -> Content | None:
    """The content of a file or folder as it is now; None where there is none."""
    stamp = signature(path)
    return None if stamp is None else Content(content_digest(path), stamp)


class Contents:
    """The contents of many files, cached in a file from one start to the next.

    A file that is not in the cache is read. A cache that cannot be read or written costs time and nothing else.

    Attributes:
        doubted: files that are read whatever their times say; None as long as nobody has looked for any.
    """

    def __init__(self, memory: Path) -> None:
        self.root = Path.cwd()
        self.memory = self.root / memory
        self._remembered: dict[str, Content] | None = None
        self._changed = False
        self.doubted: frozenset[str] | None = None
        self._signature = cache(signature)
        self._content = cache(lambda path: content(path) or UNKNOWN)

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return self._signature(path) is not None

    def is_still(self, path: str, known: Content) -> bool:
        """Whether a file that exists still has a known content."""
        return self.now(path, known).digest == known.digest

    def now(self, path: str, known: Content | None = None) -> Content:
        """The content of a file that exists; `known` is its content by a record."""
        stamp = self._signature(path)
        doubted = path in (self.doubted or ())
        if known is not None and stamp == known.signature and not doubted:
            return known
        remembered = self._memory().get(path)
        if doubted or remembered is None or remembered.signature != stamp:
            remembered = self._memory()[path] = self._content(path)
            self._changed = True
        return remembered

    def remember(self, path: str, known: Content) -> None:
        """Cache this content of a file that may have got another time since."""
        stamp = signature(path)
        if stamp is not None and (stamp[0], stamp[3]) == (known.signature[0], known.signature[3]):
            self._memory()[path] = Content(known.digest, stamp)
            self._changed = True

    def save(self) -> None:
        """Write the cache."""
        if self._changed and self._remembered is not None:
            _write(
                self.memory,
                {path: as_list(known) for path, known in self._remembered.items() if (self.root / path).exists()},
            )
            self._changed = False

    def _memory(self) -> dict[str, Content]:
        if self._remembered is None:
            self._remembered = _read(self.memory)
        return self._remembered


def as_list(known: Content) -> list[str | int]:
    """A content as a list for JSON."""
    return [known.digest, *known.signature]


def from_list(values: list[str | int]) -> Content:
    """The content that `as_list` wrote.

    Raises:
        ValueError, TypeError: the list has another form.
    """
    digest, size, changed, noted, inode = values
    return Content(str(digest), (int(size), int(changed), int(noted), int(inode)))


def _as_date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _of_folder(folder: Path) -> Signature:
    files = {file.relative_to(folder).as_posix(): file.stat() for file in _files(folder)}
    named = "".join(f"{name} {status.st_ino}\n" for name, status in files.items())
    latest = [
        max((getattr(status, time) for status in files.values()), default=0) for time in ("st_mtime_ns", "st_ctime_ns")
    ]
    check_sum = int(hashlib.sha256(named.encode()).hexdigest()[:12], 16)
    return sum(status.st_size for status in files.values()), latest[0], latest[1], check_sum


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".snakemake_timestamp")


def _read(path: Path) -> dict[str, Content]:
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {name: from_list(values) for name, values in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(path: Path, value: Mapping[str, list[str | int]]) -> None:
    with suppress(OSError):
        write_whole(path, json.dumps(value))
