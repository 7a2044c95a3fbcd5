"""GPUs that a job may use: those that the driver lists, those made visible, and what fails on them, in one sentence."""

import logging
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from brainfed.runtime import UserError

DRIVER_FOLDER = Path("/proc/driver/nvidia")
NVIDIA_SMI = "BRAINFED_NVIDIA_SMI"
LOST = frozenset({"[GPU is lost]", "[GPU requires reset]"})
ANSWER_SECONDS = 60
VISIBLE = "CUDA_VISIBLE_DEVICES"
JOBS_PER_GPU = "BRAINFED_JOBS_PER_GPU"
VARIABLE, NONE = "BRAINFED_GPUS", "none"
ON_CPU = "run with --resources gpu=0 to use the CPU"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gpu:
    """A device: its number in the driver's order, its permanent name, its memory, MiB (0 where it is not reported)."""

    index: str
    uuid: str
    used: float
    total: float


def query() -> tuple[Gpu, ...]:
    """The GPUs of this machine that work, in the driver's order.

    Raises:
        UserError: nvidia-smi is missing, fails, does not answer, or lists no device that works.
    """
    program = _nvidia_smi()
    try:
        code, answer, errors = _ask("--query-gpu=index,uuid,memory.used,memory.total")
    except OSError as error:
        raise UserError(
            f"{program}: the GPUs cannot be listed ({error.strerror}); put nvidia-smi on PATH or name it in "
            f"{NVIDIA_SMI}, or {ON_CPU}."
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
    listed = {line: _gpu(line) for line in answer.splitlines() if line.strip()}
    lost = [line for line, gpu in listed.items() if gpu is None]
    if len(lost) == len(listed):
        devices = f"no device that works ({'; '.join(lost)})" if lost else "no device"
        raise UserError(f"{program}: the NVIDIA driver lists {devices}; have the driver mended, or {ON_CPU}.")
    for line in lost:
        logger.info("left out, the driver has lost it: %s", line)
    return tuple(gpu for gpu in listed.values() if gpu is not None)


def memory_of_processes() -> Counter[tuple[str, int]]:
    """Memory that processes use, MiB, by (UUID, process), as far as the driver reports it.

    Inside a container it lists none, or numbers them as the host does.
    """
    used = Counter[tuple[str, int]]()
    try:
        code, answer, _ = _ask("--query-compute-apps=gpu_uuid,pid,used_memory")
    except (OSError, subprocess.TimeoutExpired):
        return used
    for uuid, pid, mebibytes in re.findall(r"^([^,\n]+), *(\d+), *(\d+)", answer if code == 0 else "", re.MULTILINE):
        used[uuid, int(pid)] += int(mebibytes)
    return used


def _nvidia_smi() -> str:
    return os.environ.get(NVIDIA_SMI) or "nvidia-smi"


def _ask(question: str) -> tuple[int, str, str]:
    """Exit code, answer and errors of nvidia-smi."""
    command = [_nvidia_smi(), question, "--format=csv,noheader,nounits"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        answer, errors = process.communicate(timeout=ANSWER_SECONDS)
    except BaseException:
        # With a broken driver the program may hang in the kernel, where no signal ends it: do not wait for its end.
        process.kill()
        raise
    return process.returncode, answer, errors


def _gpu(line: str) -> Gpu | None:
    """The device in a line of the answer; None for one off the bus, with errors in place of its numbers."""
    fields = [field.strip() for field in line.split(",")]
    if not LOST.isdisjoint(fields) or (len(fields) == 4 and fields[1].startswith("[")):
        return None
    if len(fields) != 4:
        raise UserError(f"nvidia-smi: expected index, uuid, used and total memory, found {line!r}; {ON_CPU}.")
    index, uuid, used, total = fields
    try:
        return Gpu(index, uuid, float(used), float(total))
    except ValueError:
        # Memory shared with the CPU, divided devices.
        return Gpu(index, uuid, 0.0, 0.0)


def entries(visible: str) -> tuple[str, ...]:
    """The devices that CUDA_VISIBLE_DEVICES names; as in CUDA, an empty or negative one ends the list."""
    named = (entry.strip() for entry in visible.split(","))
    return tuple(dict.fromkeys(takewhile(lambda entry: entry[:1] not in ("", "-") and entry != "NoDevFiles", named)))


def candidates(requested: int) -> dict[str, str]:
    """Devices that this process may use, in the order of CUDA_VISIBLE_DEVICES or the driver -> a name for their locks.

    The devices of a SLURM job are those of its allocation: SLURM numbers them anew in each, and no other job uses them.

    Raises:
        UserError: CUDA_VISIBLE_DEVICES names a device that is not there, or there are fewer than requested.
    """
    visible, allocation = os.environ.get(VISIBLE), os.environ.get("SLURM_JOB_ID")
    if allocation is None:
        here = query()
        named = [gpu.uuid for gpu in here] if visible is None else [_uuid(entry, here) for entry in entries(visible)]
        usable = {uuid: uuid.replace("/", "_") for uuid in named}
        few = (
            f"{requested} GPU(s) are asked for, {len(usable)} can be seen ({VISIBLE}={visible}); ask for fewer, make "
            f"more visible, or {ON_CPU}."
        )
    else:
        usable = {entry: f"slurm-{allocation}-{entry}".replace("/", "_") for entry in entries(visible or "")}
        few = (
            f"SLURM job {allocation}: the rule asks for {requested} GPU(s), SLURM allocated {len(usable)} ({VISIBLE}); "
            f"name a partition with GPUs (slurm_partition), or {ON_CPU}, with {VARIABLE}={NONE} in the environment of "
            "jobs where the cluster does not hand on Snakemake's."
        )
    if len(usable) < requested:
        raise UserError(few)
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


def missing_gpu() -> str | None:
    """Why GPU jobs run on the CPU here, in one sentence; None where GPUs are to be used.

    Only a machine without any driver (a named nvidia-smi, one on PATH, or a module in the kernel), or whose user has
    hidden the devices, is without GPU: a broken driver is an error, which `lease` raises.
    """
    visible = os.environ.get(VISIBLE)
    if "SLURM_JOB_ID" in os.environ or entries(visible or ""):
        return None
    if visible is not None:
        return f"CPU: {VISIBLE}={visible!r} hides the GPUs"
    there = os.environ.get(NVIDIA_SMI) or shutil.which("nvidia-smi") or DRIVER_FOLDER.exists()
    return None if there else "CPU: this machine has no NVIDIA driver"


def unusable_gpu() -> str | None:
    """The error of a job that asks for a GPU here; None where it may get one."""
    try:
        candidates(1)
    except UserError as error:
        return str(error)
    return None


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


def announce(allowed: bool) -> None:
    """Set whether this process and the jobs that it submits may use GPUs.

    Snakemake's limits (`--resources gpu=0`) bind the process that submits the jobs. A submitted job reads the workflow
    again without them, in the environment of that process.
    """
    os.environ[VARIABLE] = "allowed" if allowed else NONE


def gpus(number: int) -> int:
    """GPUs to request for a job that can use `number`: none in a run that may use none."""
    return 0 if os.environ.get(VARIABLE) == NONE else number


# Errors of CUDA on a leased GPU.

REMEDIES = {
    "busy or unavailable": f"it serves one process at a time: unset {JOBS_PER_GPU}, list its processes (nvidia-smi)",
    "out of memory": f"its memory is full: lower {JOBS_PER_GPU}, list its processes (nvidia-smi)",
    "display driver / cuda driver combination|forward compatibility was attempted": (
        "the driver was changed under a running system: restart it"
    ),
    "system not yet initialized": "the server's fabric manager is not running: have nvidia-fabricmanager started",
    "no kernel image": "install a build of torch for this generation of GPUs",
    "is too old|driver version is insufficient": "update the driver, or install a build of torch for an older CUDA",
    "found no nvidia driver": "the driver is out of reach: in a container start that with access to the GPUs",
    "no cuda gpus are available|no cuda-capable device": (
        "the device is gone: see nvidia-smi, and restart the machine if it is not listed"
    ),
}
"""Phrases in a message of CUDA or torch -> remedy; the first match counts."""
# Bugs of a program need their traceback, and full memory is no failure of the device.
NOT_THE_DEVICE = "illegal memory access|device-side assert|misaligned address|invalid |cublas_status|out of memory"


class UnusableGpuError(UserError):
    """CUDA cannot use a leased GPU at all; other programs may have filled its memory."""


@contextmanager
def using_cuda(uuids: Sequence[str]) -> Iterator[None]:
    """Use the leased GPUs for the body of the `with`; without any it runs on the CPU.

    Raises:
        UnusableGpuError: torch is built without CUDA, or CUDA cannot use the device.
        UserError: the device fails in the middle.
    """
    if uuids:
        check_cuda(uuids)
    try:
        yield
    except RuntimeError as error:
        sentence = lost_device(error, uuids) if uuids else None
        if sentence is None:
            raise
        logger.info("the device failed here:", exc_info=True)
        raise UserError(sentence) from error


def check_cuda(uuids: Sequence[str]) -> None:
    """Run one small operation on the leased GPU, before hours are spent.

    Raises:
        UnusableGpuError: torch is built without CUDA, or CUDA cannot use the device.
    """
    import torch

    named = f"GPU {', '.join(uuids)}: the installed torch {torch.__version__}"
    fitting = "install a CUDA build of torch that the driver supports"
    if torch.version.cuda is None:
        raise UnusableGpuError(f"{named} is built without CUDA; {fitting}, or {ON_CPU}.")
    try:
        torch.zeros(1, device="cuda:0").add_(1).cpu()
    except (RuntimeError, AssertionError) as error:
        message, remedy = _explained(error, fitting)
        raise UnusableGpuError(f"{named} cannot use it ({message}); {remedy}, or {ON_CPU}.") from error


def lost_device(error: RuntimeError, uuids: Sequence[str]) -> str | None:
    """The sentence for an error that a failing GPU raised in the middle of a job; None for any other error."""
    broken = "the device or its driver failed: see nvidia-smi and the kernel's log (dmesg, lines with Xid)"
    message, remedy = _explained(error, broken)
    if not message.startswith("CUDA error") or re.search(NOT_THE_DEVICE, message.lower()):
        return None
    return (
        f"GPU {', '.join(uuids)}: {message}; {remedy}, then run again (training resumes from its last checkpoint), "
        f"name other devices in {VISIBLE}, or {ON_CPU}."
    )


def _explained(error: BaseException, default: str) -> tuple[str, str]:
    """The first line of an error of CUDA, and its remedy."""
    lines = str(error).strip().splitlines()
    message = lines[0].rstrip(" .") if lines else type(error).__name__
    return message, next(
        (remedy for phrases, remedy in REMEDIES.items() if re.search(phrases, message.lower())), default
    )


def peak_gpu_memory() -> float:
    """Peak memory that torch has reserved on the leased GPU so far, MiB."""
    import torch

    return float(torch.cuda.max_memory_reserved("cuda:0")) / 1024**2
