"""A piece of work in a process of its own: its seconds of the clock and of the processors, and its largest memory."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

STATUS = Path("/proc/self/status")

Costs = dict[str, float]
"""By name, with what a step counts besides."""


def before_work() -> Costs:
    """What the process costs before its work: an interpreter and its imports."""
    return {"CPU seconds before": time.process_time(), "MiB before": _mib("VmRSS")}


def apart(work: Callable[..., Costs], *arguments: Any) -> Costs:
    """What `work` finds, with its costs from the start of the interpreter to its last write."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        start = time.perf_counter()
        found = pool.submit(_measured, work, *arguments).result()
        return found | {"seconds": time.perf_counter() - start}


def _measured(work: Callable[..., Costs], *arguments: Any) -> Costs:
    found = work(*arguments)
    return found | {"CPU seconds": time.process_time(), "MiB": _mib("VmHWM")}


def _mib(name: str) -> float:
    """`VmRSS` now, `VmHWM` at most; not ru_maxrss, which starts at what the parent held."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))
