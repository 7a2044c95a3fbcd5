"""What can be wrong with CUDA once a GPU is leased, in one sentence each, and the memory that torch takes there."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from brainfed.runtime.devices.driver import ON_CPU
from brainfed.runtime.devices.slots import JOBS_PER_GPU
from brainfed.runtime.errors import UserError

# What CUDA and torch say -> what to do. The first that is found in the message counts.
REMEDIES = (
    (
        "busy or unavailable",
        f"it serves one process at a time: unset {JOBS_PER_GPU}, see who is there (nvidia-smi)",
    ),
    ("out of memory", f"its memory is full: lower {JOBS_PER_GPU}, see who is there (nvidia-smi)"),
    ("display driver / cuda driver combination", "the driver was changed under a running system: restart it"),
    ("forward compatibility was attempted", "the driver was changed under a running system: restart it"),
    (
        "system not yet initialized",
        "the server's fabric manager is not running: have nvidia-fabricmanager started",
    ),
    ("no kernel image", "install a build of torch for this generation of GPUs"),
    ("is too old", "update the driver, or install a build of torch for an older CUDA"),
    ("driver version is insufficient", "update the driver, or install a build of torch for an older CUDA"),
    ("found no nvidia driver", "the driver is out of reach: in a container start that with access to the GPUs"),
    ("no cuda gpus are available", "the device is gone: see nvidia-smi, and restart the machine if it is not listed"),
    ("no cuda-capable device", "the device is gone: see nvidia-smi, and restart the machine if it is not listed"),
)
FAILED = "CUDA error"
BROKEN = "the device or its driver failed: see nvidia-smi and the kernel's log (dmesg, lines with Xid)"
# Mistakes of a program, which need their traceback, and want of memory, which is no failure of the device.
NOT_THE_DEVICE = (
    "illegal memory access",
    "device-side assert",
    "misaligned address",
    "invalid ",
    "cublas_status",
    "out of memory",
)

logger = logging.getLogger(__name__)


class UnusableGpuError(UserError):
    """CUDA cannot use a leased GPU at all, be it that others have filled it; no job was too large for it yet."""


@contextmanager
def using_cuda(uuids: Sequence[str]) -> Iterator[None]:
    """Use the leased GPUs for the body of the `with`; without any it runs on the CPU.

    Raises:
        UnusableGpuError: torch is built without CUDA, or CUDA cannot use the device.
        UserError: the device fails in the middle.
    """
    if not uuids:
        yield
        return
    check_cuda(uuids)
    try:
        yield
    except RuntimeError as error:
        sentence = lost_device(error, uuids)
        if sentence is None:
            raise
        logger.info("the device failed here:", exc_info=True)
        raise UserError(sentence) from error


def check_cuda(uuids: Sequence[str]) -> None:
    """Use the leased GPU once, before hours are spent.

    Raises:
        UnusableGpuError: torch is built without CUDA, or CUDA cannot use the device.
    """
    import torch

    named = f"GPU {', '.join(uuids)}: the installed torch {torch.__version__}"
    if torch.version.cuda is None:
        raise UnusableGpuError(
            f"{named} is built without CUDA; install a CUDA build of torch that the driver supports, or {ON_CPU}."
        )
    try:
        torch.zeros(1, device="cuda:0").add_(1).cpu()
    except (RuntimeError, AssertionError) as error:
        said = _first_line(error)
        remedy = _remedy(said) or "install a CUDA build of torch that the driver supports"
        raise UnusableGpuError(f"{named} cannot use it ({said}); {remedy}, or {ON_CPU}.") from error


def lost_device(error: RuntimeError, uuids: Sequence[str]) -> str | None:
    """The sentence for an error that a failing GPU raised in the middle of a job; None for any other error."""
    said = _first_line(error)
    if not said.startswith(FAILED) or any(phrase in said.lower() for phrase in NOT_THE_DEVICE):
        return None
    return (
        f"GPU {', '.join(uuids)}: {said}; {_remedy(said) or BROKEN}, then run again (training resumes from its last "
        f"checkpoint), name other devices in CUDA_VISIBLE_DEVICES, or {ON_CPU}."
    )


def peak_gpu_memory() -> float:
    """The most memory that torch has taken from the leased GPU so far, what it keeps in store included, MiB."""
    import torch

    return float(torch.cuda.max_memory_reserved("cuda:0")) / 1024**2


def _remedy(said: str) -> str | None:
    return next((remedy for phrase, remedy in REMEDIES if phrase in said.lower()), None)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .") if lines else type(error).__name__
