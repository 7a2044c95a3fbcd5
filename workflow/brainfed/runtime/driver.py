"""What the NVIDIA driver says of this machine's GPUs, asked through `nvidia-smi`."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from brainfed.runtime.errors import UserError

DRIVER_FOLDER = Path("/proc/driver/nvidia")
QUERY = ("--query-gpu=index,uuid,memory.used,memory.total", "--format=csv,noheader,nounits")
ANSWER_SECONDS = 60
ON_CPU = "run with --resources gpu=0 to use the CPU"


@dataclass(frozen=True)
class Gpu:
    """One device: its index in the driver's order, its UUID, and the share of its memory in use.

    The share is 0 where the driver does not tell (memory shared with the CPU, divided devices).
    """

    index: str
    uuid: str
    used_share: float


def installed(nvidia_smi: str | None = None) -> bool:
    """Whether there is a driver to ask: one that was named, one on PATH, or one in the kernel."""
    named = nvidia_smi or os.environ.get("BRAINFED_NVIDIA_SMI")
    return bool(named or shutil.which("nvidia-smi") or DRIVER_FOLDER.exists())


def query(nvidia_smi: str | None = None) -> tuple[Gpu, ...]:
    """The GPUs of this machine, in the driver's order.

    Args:
        nvidia_smi: the program; default BRAINFED_NVIDIA_SMI, else `nvidia-smi` on PATH.

    Raises:
        UserError: the program is missing, fails, does not answer, or lists no device.
    """
    program = nvidia_smi or os.environ.get("BRAINFED_NVIDIA_SMI") or "nvidia-smi"
    try:
        answer = subprocess.run([program, *QUERY], capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False)
    except OSError as error:
        raise UserError(
            f"{program}: the GPUs cannot be listed ({error.strerror}); put nvidia-smi on PATH or name it in "
            f"BRAINFED_NVIDIA_SMI, or {ON_CPU}."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"{program}: the NVIDIA driver gave no answer in {ANSWER_SECONDS} s; have it mended, or {ON_CPU}."
        ) from error
    if answer.returncode != 0:
        said = " ".join((answer.stdout + answer.stderr).split())
        raise UserError(
            f"{program}: the NVIDIA driver is broken (exit code {answer.returncode}: {said}); "
            f"have the driver mended, or {ON_CPU}."
        )
    gpus = tuple(_gpu(line) for line in answer.stdout.splitlines() if line.strip())
    if not gpus:
        raise UserError(f"{program}: the NVIDIA driver lists no device; have the driver mended, or {ON_CPU}.")
    return gpus


def _gpu(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != 4:
        raise UserError(f"nvidia-smi: expected index, uuid, used and total memory, found {line!r}; {ON_CPU}.")
    index, uuid, used, total = fields
    try:
        return Gpu(index, uuid, float(used) / float(total))
    except (ValueError, ZeroDivisionError):
        return Gpu(index, uuid, 0.0)
