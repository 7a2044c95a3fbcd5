"""Peak memory of a piece of work in this process, without a process of its own."""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_of(work: Callable[[], Found]) -> tuple[Found, float]:
    """What `work` returns, and the MiB by which its peak is above what the process held before.

    Linux alone can measure it; NaN elsewhere. Processes that `work` starts do not count.
    """
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        # 5 resets the peak (man proc_pid_clear_refs).
        RESET.write_text("5")
    except (OSError, AttributeError):
        return work(), float("nan")
    before = _mib("VmRSS")
    found = work()
    return found, _mib("VmHWM") - before


def _mib(name: str) -> float:
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))
