"""GPUs of this machine: those that the driver lists, those that a job may see."""

import logging
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from brainfed.runtime import UserError

# GPUs of this machine, as the NVIDIA driver lists them through `nvidia-smi`.

DRIVER_FOLDER = Path("/proc/driver/nvidia")
FORMAT = "--format=csv,noheader,nounits"
QUERY = ("--query-gpu=index,uuid,memory.used,memory.total", FORMAT)
PROCESSES = ("--query-compute-apps=gpu_uuid,pid,used_memory", FORMAT)
LOST = ("[GPU is lost]", "[GPU requires reset]")
ANSWER_SECONDS = 60
ON_CPU = "run with --resources gpu=0 to use the CPU"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gpu:
    """One device.

    Attributes:
        index: its number in the driver's order.
        uuid: its permanent name.
        used, total: its memory, MiB; 0 where the driver does not report it (memory shared with the
            CPU, divided devices).
    """

    index: str
    uuid: str
    used: float
    total: float


def installed(nvidia_smi: str | None = None) -> bool:
    """Whether there is a driver: a named nvidia-smi, one on PATH, or a module in the kernel."""
    named = nvidia_smi or os.environ.get("BRAINFED_NVIDIA_SMI")
    return bool(named or shutil.which("nvidia-smi") or DRIVER_FOLDER.exists())


def query(nvidia_smi: str | None = None) -> tuple[Gpu, ...]:
    """The GPUs of this machine that work, in the driver's order.

    Args:
        nvidia_smi: the program; default BRAINFED_NVIDIA_SMI, else `nvidia-smi` on PATH.

    Raises:
        UserError: the program is missing, fails, does not answer, or lists no device.
    """
    program = _program(nvidia_smi)
    try:
        code, answer, errors = _ask(program, QUERY)
    except OSError as error:
        raise UserError(
            f"{program}: the GPUs cannot be listed ({error.strerror}); put nvidia-smi on PATH or name it in "
            f"BRAINFED_NVIDIA_SMI, or {ON_CPU}."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"{program}: the NVIDIA driver gave no answer in {ANSWER_SECONDS} s; have it mended (mostly a restart of "
            f"the machine), or {ON_CPU}."
        ) from error
    if code != 0:
        output = " ".join((answer + errors).split())
        raise UserError(
            f"{program}: the NVIDIA driver is broken (exit code {code}: {output}); have the driver mended, or {ON_CPU}."
        )
    listed = [line for line in answer.splitlines() if line.strip()]
    lost = [line for line in listed if _is_lost(line)]
    if len(listed) == len(lost):
        devices = f"no device that works ({'; '.join(lost)})" if lost else "no device"
        raise UserError(f"{program}: the NVIDIA driver lists {devices}; have the driver mended, or {ON_CPU}.")
    for line in lost:
        logger.info("left out, the driver has lost it: %s", line)
    return tuple(_gpu(line) for line in listed if line not in lost)


def memory_of_processes(nvidia_smi: str | None = None) -> dict[tuple[str, int], float]:
    """Memory that processes use, MiB, by (UUID, process), as far as the driver reports it.

    Inside a container it lists none, or numbers them as the host does.
    """
    try:
        code, answer, _ = _ask(_program(nvidia_smi), PROCESSES)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    used: dict[tuple[str, int], float] = {}
    for fields in (line.split(",") for line in answer.splitlines() if code == 0):
        try:
            uuid, pid, megabytes = fields[0].strip(), int(fields[1]), float(fields[2])
        except (IndexError, ValueError):
            continue
        used[uuid, pid] = used.get((uuid, pid), 0.0) + megabytes
    return used


def _program(nvidia_smi: str | None) -> str:
    return nvidia_smi or os.environ.get("BRAINFED_NVIDIA_SMI") or "nvidia-smi"


def _ask(program: str, question: Sequence[str]) -> tuple[int, str, str]:
    """Exit code, answer and errors of the driver's program."""
    process = subprocess.Popen([program, *question], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer, errors = process.communicate(timeout=ANSWER_SECONDS)
    except BaseException:
        # With a broken driver the program may hang in the kernel, where no signal ends it: do not wait for its end.
        process.kill()
        raise
    return process.returncode, answer, errors


def _is_lost(line: str) -> bool:
    """Whether a device has fallen off the bus: the driver still lists it, with an error in place of numbers."""
    fields = [field.strip() for field in line.split(",")]
    return any(field in LOST for field in fields) or (len(fields) == 4 and fields[1].startswith("["))


def _gpu(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 4:
        raise UserError(f"nvidia-smi: expected index, uuid, used and total memory, found {line!r}; {ON_CPU}.")
    index, uuid, used, total = fields
    try:
        return Gpu(index, uuid, float(used), float(total))
    except ValueError:
        return Gpu(index, uuid, 0.0, 0.0)


# CUDA_VISIBLE_DEVICES: reading the devices that it names, and setting those that a job holds.

VISIBLE = "CUDA_VISIBLE_DEVICES"


def entries(visible: str) -> tuple[str, ...]:
    """The devices that CUDA_VISIBLE_DEVICES names; as in CUDA, an empty or negative one ends the list."""
    named: list[str] = []
    for entry in (part.strip() for part in visible.split(",")):
        if not entry or entry.startswith("-") or entry == "NoDevFiles":
            break
        named.append(entry)
    return tuple(dict.fromkeys(named))


def candidates(requested: int, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """UUIDs of the devices that this process may use, in the order of CUDA_VISIBLE_DEVICES or the driver.

    Raises:
        UserError: CUDA_VISIBLE_DEVICES names a device that is not there, or there are fewer than requested.
    """
    visible = os.environ.get(VISIBLE)
    named = [gpu.uuid for gpu in gpus] if visible is None else [_uuid(entry, gpus) for entry in entries(visible)]
    usable = tuple(dict.fromkeys(named))
    if len(usable) < requested:
        raise UserError(
            f"{requested} GPU(s) are asked for, {len(usable)} can be seen ({VISIBLE}={visible}); "
            f"ask for fewer, make more visible, or {ON_CPU}."
        )
    return usable


def _uuid(entry: str, gpus: Sequence[Gpu]) -> str:
    """The UUID that an entry of CUDA_VISIBLE_DEVICES (an index, a UUID or the start of one) means."""
    if entry.startswith("MIG-"):
        return entry
    abbreviated = entry.startswith("GPU-")
    matches = [gpu.uuid for gpu in gpus if gpu.index == entry or (abbreviated and gpu.uuid.startswith(entry))]
    if len(matches) != 1:
        here = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in gpus)
        raise UserError(f"{VISIBLE}: {entry!r} is no device of this machine, it has {here}; correct it or unset it.")
    return matches[0]


@contextmanager
def showing(uuids: Sequence[str]) -> Iterator[None]:
    """Show these devices alone to CUDA, for the body of the `with`."""
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = ",".join(uuids)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VISIBLE, None)
        else:
            os.environ[VISIBLE] = before


# Whether a run may use GPUs, passed to its jobs on a cluster in an environment variable.
#
# Snakemake's limits (`--resources gpu=0`) bind the process that submits the jobs. A submitted job reads the workflow
# again without them, in the environment of that process.

VARIABLE = "BRAINFED_GPUS"
NONE = "none"


def announce(allowed: bool) -> None:
    """Set whether this process and the jobs that it submits may use GPUs."""
    os.environ[VARIABLE] = "allowed" if allowed else NONE


def gpus(number: int) -> int:
    """GPUs to request for a job that can use `number`: none in a run that may use none."""
    return 0 if os.environ.get(VARIABLE) == NONE else number
