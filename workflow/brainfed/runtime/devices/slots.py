"""Places on a GPU: how many jobs may share it, which jobs hold places now, and taking one more.

A place is a file `UUID.NUMBER.lock` (`runtime.devices.locks`). Its lock decides; its text names the holder, for people
who wait and for the next job. All functions are called under the gate of `runtime.devices.lease`, so that a test of a
lock is never mistaken for a lease.
"""

import contextlib
import json
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from brainfed.runtime.devices.locks import is_free, locked
from brainfed.runtime.errors import UserError

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
