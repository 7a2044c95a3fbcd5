"""Errors of CUDA on a leased GPU, in one sentence each, and torch's peak memory there."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from brainfed.runtime import UserError
from brainfed.runtime.devices._driver import ON_CPU
from brainfed.runtime.devices._lease import JOBS_PER_GPU

# Phrase in a message of CUDA or torch -> remedy. The first match counts.
REMEDIES = (
    (
        "busy or unavailable",
        f"it serves one process at a time: unset {JOBS_PER_GPU}, list its processes (nvidia-smi)",
    ),
    ("out of memory", f"its memory is full: lower {JOBS_PER_GPU}, list its processes (nvidia-smi)"),
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
# Bugs of a program need their traceback, and full memory is no failure of the device.
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
    """CUDA cannot use a leased GPU at all; other programs may have filled its memory."""


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
    """Run one small operation on the leased GPU, before hours are spent.

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
        message = _first_line(error)
        remedy = _remedy(message) or "install a CUDA build of torch that the driver supports"
        raise UnusableGpuError(f"{named} cannot use it ({message}); {remedy}, or {ON_CPU}.") from error


def lost_device(error: RuntimeError, uuids: Sequence[str]) -> str | None:
    """The sentence for an error that a failing GPU raised in the middle of a job; None for any other error."""
    message = _first_line(error)
    if not message.startswith(FAILED) or any(phrase in message.lower() for phrase in NOT_THE_DEVICE):
        return None
    return (
        f"GPU {', '.join(uuids)}: {message}; {_remedy(message) or BROKEN}, then run again (training resumes from its "
        f"last checkpoint), name other devices in CUDA_VISIBLE_DEVICES, or {ON_CPU}."
    )


def peak_gpu_memory() -> float:
    """Peak memory that torch has reserved on the leased GPU so far, MiB."""
    import torch

    return float(torch.cuda.max_memory_reserved("cuda:0")) / 1024**2


def _remedy(message: str) -> str | None:
    return next((remedy for phrase, remedy in REMEDIES if phrase in message.lower()), None)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .") if lines else type(error).__name__
