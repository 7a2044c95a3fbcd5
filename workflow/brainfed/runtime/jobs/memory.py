"""Memory that has run out: how it is recognised, and the settings that make a job smaller.

The kernel's own OOM killer sends SIGKILL, which a job cannot report; SLURM then reports OUT_OF_MEMORY.
"""

import math
import re

from brainfed.runtime.devices.slots import JOBS_PER_GPU
from brainfed.runtime.jobs.limits import AGAIN, MORE_THREADS, limits_here, limits_of_threads

PHRASES = (
    "can't allocate memory",  # torch on the CPU
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Cannot allocate memory",
    "failed to map segment from shared object",  # a library that is loaded
)
NO_THREAD = (
    "can't start new thread",  # Python
    "Failed to launch worker thread",  # Arrow
    "Resource temporarily unavailable",  # C++, Rust
)
CUDA = re.compile(r"\b(CUDA|CUBLAS|CUDNN)")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory, the machine's or a GPU's, has run out, or room for a thread."""
    return isinstance(error, MemoryError) or any(phrase in str(error) for phrase in PHRASES + NO_THREAD)


def out_of_memory(error: BaseException, rule: str, smaller: str, peak: float, asked: int = 0) -> str:
    """The sentence about a job that did not fit.

    Args:
        error: what was raised.
        rule: the rule's name.
        smaller: how to make the job smaller.
        peak: its largest resident memory, MiB.
        asked: the `mem_mb` that it asked for; 0 where none is known.
    """
    words = _first_words(error)
    if type(error).__name__ == "OutOfMemoryError" or CUDA.search(str(error)):
        return (
            f"{rule}: the GPU's memory has run out ({words}); make the job smaller by {smaller}, "
            f"let fewer jobs share a GPU ({JOBS_PER_GPU}), or run it on the CPU (--resources gpu=0), {AGAIN}"
        )
    if any(phrase in str(error) for phrase in NO_THREAD):
        return f"{rule}: a thread could not be started ({words}); {limits_of_threads()}: {MORE_THREADS}, {AGAIN}"
    limited = limits_here()
    raised = f"{limited}: raise that limit, or " if limited else ""
    more = math.ceil(2 * max(asked, peak, 1000) / 1000) * 1000
    return (
        f"{rule}: memory has run out ({words}; this job held {peak:,.0f} MiB at most); {raised}run fewer jobs at once "
        "(--cores 1, or a limit for all of them together, in MB: --resources gpu=N mem_mb=N), give the job more where "
        f"a cluster limits it (--set-resources {rule}:mem_mb={more}), or make it smaller by {smaller}, {AGAIN}"
    )


def _first_words(error: BaseException) -> str:
    """The library's first two sentences, which name the amount that it asked for."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return ", ".join(first.split(". ")[:2]).rstrip(".")[:200]
