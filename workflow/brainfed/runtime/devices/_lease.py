"""Leases of GPUs: two jobs never share a device by accident, and a killed job frees its own.

Snakemake's `--resources gpu=N` only counts. A job leases concrete devices here before it imports torch: a place on
each, and a device has one place unless BRAINFED_JOBS_PER_GPU allows more. CUDA_VISIBLE_DEVICES then names what it
holds, and the job uses `cuda:0`. A place is a file `UUID.NUMBER.lock`. Its lock decides; its text names the holder, for
people who wait and for the next job.
"""

import contextlib
import json
import logging
import os
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from brainfed.runtime import UserError, is_full
from brainfed.runtime.devices._driver import (
    ON_CPU,
    VISIBLE,
    candidates,
    jobs_per_gpu,
    memory_of_processes,
    missing_gpu,
    query,
)

TEMPORARY = Path("/tmp")
HOLDERS_NAMED = 4

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lease:
    """What a job may use until it ends, and one sentence on it for the log.

    `device` is a torch device (`cuda:0` or `cpu`), `uuids` are the leased GPUs as CUDA_VISIBLE_DEVICES names them.
    """

    device: str
    uuids: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Patience:
    """How a job waits for devices, s, and the share of a device's memory above which it counts as taken.

    It waits `poll` between two tries, `remind` between two messages, and `grace` for memory that strangers seem to have
    taken: a job of ours frees its memory a moment after its lock.
    """

    poll: float = 5.0
    remind: float = 60.0
    grace: float = 15.0
    taken: float = 0.5


@dataclass(frozen=True)
class Holder:
    """A job that holds a place: its process (0 where unknown), its log file, and the most jobs that it lets share."""

    pid: int
    purpose: str
    jobs_per_gpu: int

    def __str__(self) -> str:
        job = f"pid {self.pid}" if self.pid else "a job"
        return f"{job} ({self.purpose})" if self.purpose else job


UNKNOWN = Holder(0, "", 1)


@contextmanager
def lease(requested: int, *, purpose: str = "", patience: Patience = Patience()) -> Iterator[Lease]:
    """Hold `requested` GPUs for the body of the `with`; without a GPU, the lease gives the reason for the CPU.

    Args:
        requested: number of GPUs; 0 asks for the CPU.
        purpose: shown to jobs that wait; a job's log file.
        patience: how to wait.

    Raises:
        UserError: the driver is broken, strangers hold the memory, fewer devices than requested are
            visible, SLURM allocated none, or BRAINFED_JOBS_PER_GPU is no number.
        RuntimeError: torch was imported before; it may have chosen its device already.
    """
    on_cpu = missing_gpu() if requested else "CPU: no GPU was asked for"
    if on_cpu is not None:
        yield Lease("cpu", (), on_cpu)
        return
    if "torch" in sys.modules:
        raise RuntimeError("a GPU must be leased before torch is imported")
    own = Holder(os.getpid(), purpose, jobs_per_gpu())
    before = os.environ.get(VISIBLE)
    with ExitStack() as stack:
        leased = _wait(candidates(requested), requested, own, patience, stack)
        granted = " as SLURM allocated" if "SLURM_JOB_ID" in os.environ else ""
        shared = f", shared by up to {own.jobs_per_gpu} jobs" if own.jobs_per_gpu > 1 else ""
        os.environ[VISIBLE] = ",".join(leased)
        try:
            yield Lease("cuda:0", leased, f"GPU {', '.join(leased)}{granted}{shared}")
        finally:
            if before is None:
                os.environ.pop(VISIBLE, None)
            else:
                os.environ[VISIBLE] = before


def _wait(
    devices: Mapping[str, str], requested: int, own: Holder, patience: Patience, stack: ExitStack
) -> tuple[str, ...]:
    """Try until `requested` devices are locked and their memory is free; `stack` keeps their locks."""
    folder = lock_folder()
    jitter = random.Random(os.getpid())
    reminded = short_since = None
    while True:
        # One process at a time tries: a device seen free stays free until it is leased, and a test of a lock is never
        # mistaken for a lease.
        with locked(folder / "gate.lock", wait=True):
            for past in folder.glob("slurm-*.lock"):
                if is_free(past):
                    past.unlink(missing_ok=True)
            holders = {device: holders_of(place, folder) for device, place in devices.items()}
            room, taken = _open_to(own, holders, patience.taken)
            if len(room) >= requested:
                for device in room[:requested]:
                    take(devices[device], folder, own, stack)
                return tuple(room[:requested])
        now = time.monotonic()
        if len(devices) - len(taken) >= requested:
            short_since = None
            if reminded is None or now - reminded >= patience.remind:
                waited_for = _described(holders)
                logger.warning(
                    "waiting for %d of %d GPU(s), other jobs hold them: %s", requested, len(devices), waited_for
                )
                reminded = now
        else:
            short_since = now if short_since is None else short_since
            if now - short_since >= patience.grace:
                raise UserError(
                    f"GPU {', '.join(taken)}: more than {patience.taken:.0%} of the memory is taken by other programs; "
                    f"wait for them, name free devices in {VISIBLE}, or {ON_CPU}."
                )
        time.sleep(patience.poll * jitter.uniform(0.5, 1.0))


def _described(holders: Mapping[str, Sequence[Holder]]) -> str:
    named = [f"{device} {holder}" for device, present in holders.items() for holder in present]
    further = len(named) - HOLDERS_NAMED
    return ", ".join(named[:HOLDERS_NAMED]) + (f" and {further} more" if further > 0 else "")


def _open_to(own: Holder, holders: Mapping[str, Sequence[Holder]], share: float) -> tuple[list[str], list[str]]:
    """Devices on which one more job fits, those with the fewest first; and those that would, had strangers not come.

    The strictest of all jobs on a device decides how many it bears. Strangers have taken a device if they use more than
    a share of its memory. Where the driver names none of a device's holders (inside a container), all memory in use
    there counts as theirs: the first of them found the device free.
    """
    room = [
        device
        for device, present in holders.items()
        if len(present) < min([own.jobs_per_gpu, *(holder.jobs_per_gpu for holder in present)])
    ]
    taken = set[str]()
    if room and "SLURM_JOB_ID" not in os.environ:
        processes = memory_of_processes() if any(holders.values()) else {}
        for gpu in query():
            present = holders.get(gpu.uuid, ())
            ours = [processes[gpu.uuid, holder.pid] for holder in present if (gpu.uuid, holder.pid) in processes]
            if (ours or not present) and gpu.used - sum(ours) > share * gpu.total:
                taken.add(gpu.uuid)
    fewest_first = sorted((device for device in room if device not in taken), key=lambda device: len(holders[device]))
    return fewest_first, [device for device in room if device in taken]


def lock_folder() -> Path:
    """The folder of the GPUs' lock files, made if need be.

    It is on this machine, as the devices are: BRAINFED_LOCKS, else a folder of this user under /tmp, whatever
    TMPDIR says: two workflows with temporary folders of their own share the devices.

    Raises:
        UserError: nothing can be written there, or the default folder belongs to another user.
    """
    chosen = os.environ.get("BRAINFED_LOCKS")
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


def holders_of(place: str, folder: Path) -> tuple[Holder, ...]:
    """The jobs that hold places on a device now."""
    return tuple(_read(path) for path in sorted(folder.glob(f"{place}.*.lock")) if not is_free(path))


def take(place: str, folder: Path, holder: Holder, stack: ExitStack) -> None:
    """Take a free place on a device until `stack` closes."""
    for number in count():
        path = folder / f"{place}.{number}.lock"
        if stack.enter_context(locked(path)):
            # A full disk leaves the text empty: such a holder shares its device with nobody.
            with contextlib.suppress(OSError):
                path.write_text(json.dumps(asdict(holder)), encoding="utf-8")
            return


def _read(path: Path) -> Holder:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Holder(int(content["pid"]), str(content["purpose"]), int(content["jobs_per_gpu"]))
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN


def is_free(path: Path) -> bool:
    """Whether no process holds the file's lock."""
    with locked(path) as free:
        return free


@contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Hold the file's lock: True, or False where another process has it (never when waiting for it).

    The kernel releases it when the process that holds it ends, however it ends.

    Raises:
        UserError: the file cannot be locked, for example another user's in a shared folder.
    """
    # Here, as only jobs that lease a GPU need it.
    from filelock import FileLock, Timeout

    lock = FileLock(path, fallback_to_soft=False)
    try:
        lock.acquire(blocking=wait)
    except Timeout:
        yield False
        return
    except OSError as error:
        if is_full(error):
            raise
        raise UserError(
            f"{path}: this lock file of a GPU cannot be used ({error.strerror}); name a folder of your own in "
            "BRAINFED_LOCKS, or unset it."
        ) from error
    try:
        yield True
    finally:
        lock.release()
