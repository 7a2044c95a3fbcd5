"""Places on a GPU, and the locks that hold them."""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from brainfed.runtime.disk import is_full
from brainfed.runtime.errors import UserError

# Locks on files: the kernel releases them when the process that holds them ends, however it ends.

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


# Places on a GPU: how many jobs may share it, which jobs hold places now, and taking one more.
#
# A place is a file `UUID.NUMBER.lock` (`runtime.devices.slots`). Its lock decides; its text names the holder, for
# people who wait and for the next job. All functions are called under the gate of `runtime.devices.lease`, so that a
# test of a lock is never mistaken for a lease.

JOBS_PER_GPU = "BRAINFED_JOBS_PER_GPU"


@dataclass(frozen=True)
class Holder:
    """A job that holds a place.

    Attributes:
        pid: its process; 0 where it is unknown.
        purpose: its log file.
        jobs_per_gpu: the most jobs that it accepts on its device, itself included.
    """

    pid: int
    purpose: str
    jobs_per_gpu: int

    def __str__(self) -> str:
        job = f"pid {self.pid}" if self.pid else "a job"
        return f"{job} ({self.purpose})" if self.purpose else job


UNKNOWN = Holder(0, "", 1)


def jobs_per_gpu() -> int:
    """How many jobs may share a GPU, from BRAINFED_JOBS_PER_GPU; 1 where it is not set.

    Raises:
        UserError: it is no whole number from 1.
    """
    value = os.environ.get(JOBS_PER_GPU, "1")
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise UserError(
            f"{JOBS_PER_GPU}: expected a whole number from 1, the jobs that may share a GPU, found {value!r}; "
            "correct it or unset it."
        )
    return int(value)


def has_room(holders: Sequence[Holder], own: int) -> bool:
    """Whether one more job fits, which accepts `own` jobs on its device: the strictest of all decides."""
    return len(holders) < min([own, *(holder.jobs_per_gpu for holder in holders)])


def holders_of(uuid: str, folder: Path) -> tuple[Holder, ...]:
    """The jobs that hold places on a device now."""
    return tuple(_read(path) for path in sorted(folder.glob(f"{_stem(uuid)}.*.lock")) if not is_free(path))


def take(uuid: str, folder: Path, holder: Holder, held: ExitStack) -> None:
    """Take a free place on a device until `held` ends."""
    for number in count():
        path = folder / f"{_stem(uuid)}.{number}.lock"
        if held.enter_context(locked(path)):
            # A full disk leaves the text empty: such a holder shares its device with nobody.
            with contextlib.suppress(OSError):
                path.write_text(json.dumps(asdict(holder)), encoding="utf-8")
            return


def forget(beginning: str, folder: Path) -> None:
    """Delete the files of free places whose names begin with `beginning`: devices of past allocations."""
    for path in folder.glob(f"{beginning}*.lock"):
        if is_free(path):
            path.unlink(missing_ok=True)


def _read(path: Path) -> Holder:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Holder(int(found["pid"]), str(found["purpose"]), int(found["jobs_per_gpu"]))
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN


def _stem(uuid: str) -> str:
    return uuid.replace("/", "_")
