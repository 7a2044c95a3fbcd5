"""Leases of GPUs: two jobs never share a device by accident, and a killed job frees its own."""

import contextlib
import fcntl
import json
import logging
import os
import random
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from brainfed.runtime import UserError, is_full
from brainfed.runtime.devices._driver import (
    NONE,
    ON_CPU,
    VISIBLE,
    candidates,
    entries,
    installed,
    memory_of_processes,
    query,
    showing,
)
from brainfed.runtime.devices._driver import VARIABLE as ALLOWED

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
# A place is a file `UUID.NUMBER.lock`. Its lock decides; its text names the holder, for people who wait and for the
# next job. All functions are called under the lock `gate.lock`, so that a test of a lock is never mistaken for a lease.

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
    """Whether one more job fits that accepts at most `own` jobs on its device; the strictest of all jobs decides."""
    return len(holders) < min([own, *(holder.jobs_per_gpu for holder in holders)])


def holders_of(uuid: str, folder: Path) -> tuple[Holder, ...]:
    """The jobs that hold places on a device now."""
    return tuple(_read(path) for path in sorted(folder.glob(f"{_stem(uuid)}.*.lock")) if not is_free(path))


def take(uuid: str, folder: Path, holder: Holder, stack: ExitStack) -> None:
    """Take a free place on a device until `stack` closes."""
    for number in count():
        path = folder / f"{_stem(uuid)}.{number}.lock"
        if stack.enter_context(locked(path)):
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
        content = json.loads(path.read_text(encoding="utf-8"))
        return Holder(int(content["pid"]), str(content["purpose"]), int(content["jobs_per_gpu"]))
    except (OSError, ValueError, KeyError, TypeError):
        return UNKNOWN


def _stem(uuid: str) -> str:
    return uuid.replace("/", "_")


# GPUs whose memory other programs have taken.


def taken_by_strangers(
    holders: Mapping[str, Sequence[Holder]], share: float, nvidia_smi: str | None = None
) -> set[str]:
    """Devices on which programs other than our holders use more than a share of the memory.

    Where the driver names none of a device's holders (inside a container), all memory in use there counts
    as theirs: the first of them found the device free.

    Args:
        holders: UUID -> our jobs that hold a place there; devices that are not named have none.
        share: of a device's memory, 0 ... 1.
        nvidia_smi: the driver's query program, as for `driver.query`.

    Raises:
        UserError: the driver is broken.
    """
    processes = memory_of_processes(nvidia_smi) if any(holders.values()) else {}
    full: set[str] = set()
    for gpu in query(nvidia_smi):
        present = holders.get(gpu.uuid, ())
        ours = [processes[gpu.uuid, holder.pid] for holder in present if (gpu.uuid, holder.pid) in processes]
        unnamed = bool(present) and not ours
        if not unnamed and gpu.used - sum(ours) > share * gpu.total:
            full.add(gpu.uuid)
    return full


# Snakemake's `--resources gpu=N` only counts. A job leases concrete devices here before it imports torch: a lock file
# for each place on a device, one place unless BRAINFED_JOBS_PER_GPU allows more. `CUDA_VISIBLE_DEVICES` then names what
# it holds, and the job uses `cuda:0`.

HOLDERS_NAMED = 4
OF_SLURM = "slurm-"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Lease:
    """What a job may use until it ends.

    Attributes:
        device: `cuda:0` or `cpu`, a torch device name.
        uuids: the leased devices as CUDA_VISIBLE_DEVICES names them; empty on the CPU.
        message: one sentence for the log.
    """

    device: str
    uuids: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class Patience:
    """How a job waits for devices, in seconds, and when a device counts as taken.

    Attributes:
        poll: between two tries while other jobs of this user hold the devices.
        remind: between two messages while waiting.
        grace: how long memory taken by strangers is checked again; a job of ours frees its memory
            a moment after its lock.
        taken: share of a device's memory above which it counts as taken.
    """

    poll: float = 5.0
    remind: float = 60.0
    grace: float = 15.0
    taken: float = 0.5


@contextmanager
def lease(
    requested: int,
    *,
    purpose: str = "",
    nvidia_smi: str | None = None,
    locks: Path | None = None,
    patience: Patience = Patience(),
) -> Iterator[Lease]:
    """Hold `requested` GPUs for the body of the `with`; without a GPU, the lease gives the reason for the CPU.

    Args:
        requested: number of GPUs; 0 asks for the CPU.
        purpose: shown to jobs that wait; a job's log file.
        nvidia_smi: the driver's query program; default BRAINFED_NVIDIA_SMI, else `nvidia-smi` on PATH.
        locks: folder of the lock files; default that of `locks.lock_folder`.
        patience: how to wait.

    Raises:
        UserError: the driver is broken, strangers hold the memory, fewer devices than requested are
            visible, SLURM allocated none, or BRAINFED_JOBS_PER_GPU is no number.
        RuntimeError: torch was imported before; it may have chosen its device already.
    """
    if requested == 0:
        yield Lease("cpu", (), "CPU: no GPU was asked for")
        return
    absent = missing_gpu(nvidia_smi)
    if absent is not None:
        yield Lease("cpu", (), absent)
        return
    if "torch" in sys.modules:
        raise RuntimeError("a GPU must be leased before torch is imported")
    own = Holder(os.getpid(), purpose, jobs_per_gpu())
    allocation = os.environ.get("SLURM_JOB_ID")
    devices = candidates(requested, query(nvidia_smi)) if allocation is None else _allocation(requested)
    pool = _Pool(devices, own, lock_folder(locks), nvidia_smi, patience, allocation)
    shared = f", shared by up to {own.jobs_per_gpu} jobs" if own.jobs_per_gpu > 1 else ""
    granted = "" if allocation is None else " as SLURM allocated"
    with ExitStack() as stack:
        leased = _wait(pool, requested, stack)
        with showing(leased):
            yield Lease("cuda:0", leased, f"GPU {', '.join(leased)}{granted}{shared}")


def missing_gpu(nvidia_smi: str | None = None) -> str | None:
    """Why GPU jobs run on the CPU here, in one sentence; None where GPUs are to be used.

    Only a machine that has no driver at all, or whose user has hidden the devices, is without GPU: a
    broken driver is an error, which `lease` raises.
    """
    if "SLURM_JOB_ID" in os.environ:
        return None
    visible = os.environ.get(VISIBLE)
    if visible is None:
        return None if installed(nvidia_smi) else "CPU: this machine has no NVIDIA driver"
    return None if entries(visible) else f"CPU: {VISIBLE}={visible!r} hides the GPUs"


def unusable_gpu(nvidia_smi: str | None = None) -> str | None:
    """The error of a job that asks for a GPU here; None where it may get one."""
    try:
        if "SLURM_JOB_ID" in os.environ:
            _allocation(1)
        else:
            candidates(1, query(nvidia_smi))
    except UserError as error:
        return str(error)
    return None


def _allocation(requested: int) -> tuple[str, ...]:
    allocated = entries(os.environ.get(VISIBLE, ""))
    if len(allocated) < requested:
        raise UserError(
            f"SLURM job {os.environ['SLURM_JOB_ID']}: the rule asks for {requested} GPU(s), SLURM allocated "
            f"{len(allocated)} ({VISIBLE}); name a partition with GPUs (slurm_partition), or {ON_CPU}, with "
            f"{ALLOWED}={NONE} in the environment of jobs where the cluster does not hand on Snakemake's."
        )
    return allocated


@dataclass(frozen=True)
class _Pool:
    """The devices to choose from, the job that asks, and how to query them.

    A SLURM `allocation` numbers its devices by itself, and no other job uses them.
    """

    candidates: tuple[str, ...]
    own: Holder
    locks: Path
    nvidia_smi: str | None
    patience: Patience
    allocation: str | None

    def key(self, device: str) -> str:
        """The name of the device's locks on this machine."""
        return device if self.allocation is None else f"{OF_SLURM}{self.allocation}-{device}"

    def taken_by_strangers(self, holders: Mapping[str, Sequence[Holder]]) -> Collection[str]:
        """The devices whose memory other programs have taken."""
        if self.allocation is not None:
            return ()
        return taken_by_strangers(holders, self.patience.taken, self.nvidia_smi)


@dataclass(frozen=True)
class _Attempt:
    """Result of one try: the devices leased, or none; those taken by strangers; the holders of each."""

    leased: tuple[str, ...]
    taken: tuple[str, ...]
    holders: Mapping[str, Sequence[Holder]]


def _wait(pool: _Pool, requested: int, stack: ExitStack) -> tuple[str, ...]:
    """Try until `requested` devices are locked and their memory is free; `stack` keeps their locks."""
    patience = pool.patience
    jitter = random.Random(os.getpid())
    reminded = short_since = None
    while True:
        attempt = _try(pool, requested, stack)
        if attempt.leased:
            return attempt.leased
        now = time.monotonic()
        if len(pool.candidates) - len(attempt.taken) >= requested:
            short_since = None
            if reminded is None or now - reminded >= patience.remind:
                logger.warning(
                    "waiting for %d of %d GPU(s), other jobs hold them: %s",
                    requested,
                    len(pool.candidates),
                    _described(attempt.holders),
                )
                reminded = now
        else:
            short_since = now if short_since is None else short_since
            if now - short_since >= patience.grace:
                raise UserError(
                    f"GPU {', '.join(attempt.taken)}: more than {patience.taken:.0%} of the memory is taken by other "
                    f"programs; wait for them, name free devices in {VISIBLE}, or {ON_CPU}."
                )
        time.sleep(patience.poll * jitter.uniform(0.5, 1.0))


def _described(holders: Mapping[str, Sequence[Holder]]) -> str:
    named = [f"{uuid} {holder}" for uuid, present in holders.items() for holder in present]
    further = len(named) - HOLDERS_NAMED
    return ", ".join(named[:HOLDERS_NAMED]) + (f" and {further} more" if further > 0 else "")


def _try(pool: _Pool, requested: int, stack: ExitStack) -> _Attempt:
    """One try, of one process at a time, so a device seen free stays free until it is leased."""
    with locked(pool.locks / "gate.lock", wait=True):
        if pool.allocation is not None:
            forget(OF_SLURM, pool.locks)
        holders = {uuid: holders_of(pool.key(uuid), pool.locks) for uuid in pool.candidates}
        open_to_us = [uuid for uuid in pool.candidates if has_room(holders[uuid], pool.own.jobs_per_gpu)]
        if not open_to_us:
            return _Attempt((), (), holders)
        full = pool.taken_by_strangers(holders)
        emptiest_first = sorted((uuid for uuid in open_to_us if uuid not in full), key=lambda uuid: len(holders[uuid]))
        leased = tuple(emptiest_first[:requested]) if len(emptiest_first) >= requested else ()
        for uuid in leased:
            take(pool.key(uuid), pool.locks, pool.own, stack)
        return _Attempt(leased, tuple(uuid for uuid in open_to_us if uuid in full), holders)
