"""The record of how a result was made, written beside it by its job, and the contents of files that it names.

One record a job, hidden beside its first output (`.predictions.parquet.made`): digests of the job's parameters, its
inputs and outputs with a digest of every content, and the versions of the libraries that computed it. Snakemake keeps
such records in `.snakemake` alone; this one travels with the results.

A content is read again only where the file system shows that it may have changed. The mtime can be set to anything
(`touch -d`, `cp -p`, `rsync -a`), the time at which the file system noted a change (ctime) cannot. So a file with the
size, both times and the inode that it had still has the content that it had.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from brainfed.runtime import UserError, write_whole

Signature = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in ns, inode; for a folder the sum, the latest and a check sum over its files."""


class Content(NamedTuple):
    """The digest of a file, and the parts of the signature that the file had when it was taken.

    Attributes:
        digest: SHA-256 as 64 hexadecimal characters; empty where the content changed during a job.
        size, mtime, ctime, inode: see `Signature`.
    """

    digest: str
    size: int
    mtime: int
    ctime: int
    inode: int

    @property
    def signature(self) -> Signature:
        """What a file has that still has this content."""
        return self[1:]


LARGE = 10**9
"""Size in bytes above which Snakemake compares times alone, as our profiles have it."""
SKEW_S = 60.0
"""How far the clock of a network disk may be ahead without a word, in seconds."""
UNKNOWN = Content("", 0, 0, 0, 0)
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
    return None if stamp is None else Content(content_digest(path), *stamp)


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
        if stamp is not None and (stamp[0], stamp[3]) == (known.size, known.inode):
            self._memory()[path] = Content(known.digest, *stamp)
            self._changed = True

    def save(self) -> None:
        """Write the cache."""
        if self._changed and self._remembered is not None:
            existing = {path: known for path, known in self._remembered.items() if (self.root / path).exists()}
            with suppress(OSError):
                write_whole(self.memory, json.dumps(existing))
            self._changed = False

    def _memory(self) -> dict[str, Content]:
        if self._remembered is None:
            try:
                entries = json.loads(self.memory.read_text(encoding="utf-8"))
                self._remembered = {name: Content(*values) for name, values in entries.items()}
            except (OSError, ValueError, TypeError, AttributeError):
                self._remembered = {}
        return self._remembered


def _as_date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _of_folder(folder: Path) -> Signature:
    files = {file.relative_to(folder).as_posix(): file.stat() for file in _files(folder)}
    named = "".join(f"{name} {status.st_ino}\n" for name, status in files.items())
    mtime = max((status.st_mtime_ns for status in files.values()), default=0)
    ctime = max((status.st_ctime_ns for status in files.values()), default=0)
    check_sum = int(hashlib.sha256(named.encode()).hexdigest()[:12], 16)
    return sum(status.st_size for status in files.values()), mtime, ctime, check_sum


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".snakemake_timestamp")


# Records.

SUFFIX = ".made"
DIGEST_LENGTH = 16

Roles = tuple[tuple[str, tuple[str, ...]], ...]
"""Name of an input -> its paths, in the rule's order: two inputs that trade places are other inputs."""


@dataclass(frozen=True)
class Made:
    """How the outputs of one job were made.

    Attributes:
        parts: parameter -> digest of its value; `code` is one of them.
        inputs: the paths read, by role.
        contents: input path -> its content.
        outputs: output path -> its content.
        versions: package -> the version that computed the outputs; empty where unknown.
        adopted: whether a user had the outputs taken for those of these parameters and inputs.
    """

    parts: Mapping[str, str]
    inputs: Roles
    contents: Mapping[str, Content]
    outputs: Mapping[str, Content]
    versions: Mapping[str, str]
    adopted: bool = False


def record_path(output: str | Path) -> Path:
    """The hidden record beside a job's first output."""
    path = Path(output)
    return path.with_name(f".{path.name}{SUFFIX}")


def parts_of(given: Mapping[str, Any]) -> dict[str, str]:
    """Parameter -> digest of its value. The order of keys in a mapping counts, as it may for the job."""
    return {name: _digest(value) for name, value in given.items()}


def roles_of(inputs: Any) -> Roles:
    """The named inputs of a job, as Snakemake gives them to rules and scripts."""
    return tuple(
        (str(name), (str(value),) if isinstance(value, str | Path) else tuple(map(str, value)))
        for name, value in inputs.items()
    )


class Making:
    """Watches the inputs of a job from its start to its end.

    The inputs are read here once, before the job computes anything.

    Args:
        given: the job's parameters by name.
        inputs: the paths that it reads, by role.
        outputs: the paths that it writes; the first names the record, and without any none is kept.

    Raises:
        UserError: an input is no longer what its own job wrote.
    """

    def __init__(self, given: Mapping[str, Any], inputs: Roles, outputs: Sequence[str]) -> None:
        self._made = Made(parts_of(given), inputs, {}, {}, {})
        self._outputs = list(outputs)
        self._before = dict[str, Content]()
        if not self._outputs:
            return
        # The old record describes outputs that are about to be written anew.
        record_path(self._outputs[0]).unlink(missing_ok=True)
        for path in dict.fromkeys(path for _, paths in inputs for path in paths):
            self._before[path] = before = _readable(path)
            _require_as_written(path, before)

    def finish(self, versions: Mapping[str, str], edited: str = "") -> None:
        """Write the record. An input that another file replaced has no digest there, so that the next start sees it.

        Args:
            versions: of the libraries.
            edited: a digest of the code that has run, where it is not that of the parameters.

        Raises:
            UserError: an input changed during the job.
        """
        if not self._outputs:
            return
        contents = {path: _unless_changed(path, before) for path, before in self._before.items()}
        made = replace(self._made, contents=contents, outputs=contents_of(self._outputs), versions=dict(versions))
        write(replace(made, parts={**made.parts, **parts_of({"code": edited})}) if edited else made)


def contents_of(paths: Iterable[str]) -> dict[str, Content]:
    """Path -> content, of those that exist."""
    return {path: current for path in paths if (current := content(path)) is not None}


def write(made: Made) -> None:
    """Write a record beside the first of its outputs, whole or not at all."""
    write_whole(record_path(next(iter(made.outputs))), json.dumps(vars(made)) + "\n")


def read(output: str | Path) -> Made | None:
    """The record beside a job's first output; None where there is no whole one."""
    try:
        record = json.loads(record_path(output).read_text(encoding="utf-8"))
        for kind in ("contents", "outputs"):
            record[kind] = {name: Content(*values) for name, values in record[kind].items()}
        return Made(**record | {"inputs": tuple((name, tuple(paths)) for name, paths in record["inputs"])})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def record_of(output: str | Path) -> Made | None:
    """The record of the job that wrote a file, as its first output or another; None where there is none."""
    path = Path(output)
    if (own := read(path)) is not None or not path.parent.is_dir():
        return own
    beside = _records_in(path.parent, path.parent.stat().st_mtime_ns)
    return next((made for made in beside if str(path) in made.outputs), None)


@cache
def _records_in(folder: Path, changed: int) -> tuple[Made, ...]:  # noqa: ARG001, of a folder as it is since then
    """The records in a folder that got or lost its last file at this time."""
    named = (path.name.removeprefix(".").removesuffix(SUFFIX) for path in sorted(folder.glob(f".*{SUFFIX}")))
    records = (read(folder / name) for name in named)
    return tuple(made for made in records if made is not None)


def _readable(path: str) -> Content:
    """The content of an input, `UNKNOWN` if it cannot be read: the job reports that when it reads it."""
    try:
        return content(path) or UNKNOWN
    except OSError:
        return UNKNOWN


def _unless_changed(path: str, before: Content) -> Content:
    """The content of an input after the job; a chmod or a hard link meanwhile (a backup) is no change.

    Raises:
        UserError: it changed since.
    """
    now = signature(path)
    if now is None or before == UNKNOWN:
        return UNKNOWN
    current = before if now == before.signature else _readable(path)
    # Some network disks number their files anew.
    if now[:2] == before.signature[:2] and (current.digest == before.digest or now[3] != before.signature[3]):
        return current if now[3] == before.signature[3] else UNKNOWN
    raise UserError(
        f"{path}: expected a file that does not change while a job reads it, found one of another time, size or "
        "content; wait until it is complete, and run again."
    )


def _require_as_written(path: str, current: Content) -> None:
    """Refuse an input whose content is no longer what its own job wrote; that job then runs again."""
    made = record_of(path)
    written = made.outputs.get(path) if made else None
    if made is None or written is None or written.digest in ("", current.digest) or current == UNKNOWN:
        return
    if (written.size, written.inode) == (current.size, current.inode):
        write(replace(made, outputs={**made.outputs, path: UNKNOWN}))
        raise UserError(
            f"{path}: expected the content that its job wrote, found another: the file was edited, or damaged on the "
            "disk; run again, which computes it anew."
        )


def _digest(value: Any) -> str:
    described = json.dumps(value, separators=(",", ":"), default=repr)
    return hashlib.sha256(described.encode()).hexdigest()[:DIGEST_LENGTH]
