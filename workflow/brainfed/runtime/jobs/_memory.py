"""Memory, address space and threads that have run out, and the settings that make a job smaller."""

import math
import os
import re
import resource
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from brainfed.runtime import UserError
from brainfed.runtime.devices import JOBS_PER_GPU
from brainfed.runtime.jobs._stopping import PASSED_ON

# The kernel's own OOM killer sends SIGKILL, which a job cannot report; SLURM then reports OUT_OF_MEMORY.

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
    # The library's first two sentences, which name the amount that it asked for.
    first = (str(error).splitlines() or [type(error).__name__])[0]
    words = ", ".join(first.split(". ")[:2]).rstrip(".")[:200]
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


# Limits of a job's address space and threads (`ulimit -v`, `-d`, `-u`), which libraries do not survive.
#
# OpenBLAS ends the process where it gets no memory, V8 (charts) crashes, Arrow waits for ever for a thread that could
# not be started. So a job with too little room for any library does not begin. Where there is a limit, a process of its
# own watches the job, and says the sentence that the job could not say.

MEMORY = {"v": (resource.RLIMIT_AS, "address space"), "d": (resource.RLIMIT_DATA, "data")}
"""Option of `ulimit` -> the limit of a process that it sets, and of what."""
LEAST_MB, LEAST_OF_A_THREAD_MB = 512, 16
"""Room for Python with numpy and Arrow, and for a thread."""
OWN_THREADS = 8
"""Threads of Python and Arrow besides those that compute."""
AGAIN = "then run the same command again: it goes on from what is finished."
MORE_THREADS = "raise the limit (or that of a container on its processes), or run fewer jobs at once (--cores 1)"
DONE = b"+"


def limits_here() -> str:
    """The limits of this process's memory; empty where there are none."""
    return " and ".join(
        f"the {what} of a process is limited to {most >> 20} MiB (ulimit -{option})"
        for option, (number, what) in MEMORY.items()
        if (most := resource.getrlimit(number)[0]) != resource.RLIM_INFINITY
    )


def limits_of_threads() -> str:
    """The limits that keep a thread from being started."""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    processes = "" if most == resource.RLIM_INFINITY else f"the threads of a user are limited to {most} (ulimit -u)"
    return " and ".join(filter(None, [limits_here(), processes])) or "this machine's threads are used up"


def require_room(whose: str, threads: int) -> None:
    """Refuse limits under which libraries would not get their memory or their threads.

    Raises:
        UserError: the sentence names the limits; it begins with `whose` room is too small.
    """
    limited, least = limits_here(), (LEAST_MB + LEAST_OF_A_THREAD_MB * threads) << 20
    if any(0 <= resource.getrlimit(number)[0] < least for number, _ in MEMORY.values()):
        raise UserError(
            f"{whose}: expected room for the libraries and {threads} thread(s), at least {least >> 20} MiB, found that "
            f"{limited}; raise the limit, {AGAIN}"
        )
    if limited:  # A thread that has ended keeps address space of its process.
        return
    try:
        require_threads(threads + OWN_THREADS)
    except RuntimeError:
        raise UserError(
            f"{whose}: expected {threads + OWN_THREADS} threads that can be started, found room for fewer; "
            f"{limits_of_threads()}: {MORE_THREADS}, {AGAIN}"
        ) from None


def require_threads(number: int) -> None:
    """Start so many threads, and end them.

    Raises:
        RuntimeError: one cannot be started.
    """
    end = threading.Event()
    started = []
    try:
        for _ in range(number):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    finally:
        end.set()
        for thread in started:
            thread.join()


@contextmanager
def watched(rule: str, log: str | None) -> Iterator[Callable[[], None]]:
    """Where memory is limited, have a second process report it if this one ends in the body.

    Yields:
        A function that ends the watch, for a process that ends with a sentence of its own.
    """
    limited = limits_here()
    if not limited:
        yield lambda: None
        return
    sentence = (
        f"{rule}: the job ended without a sentence, as a library ends it that gets no memory or no thread (its own "
        f"words may stand above); {limited}: raise the limit, {AGAIN}"
    )
    ours, its = os.pipe()
    watcher = _fork_watcher(ours, its, sentence, log)
    os.close(ours)
    try:
        yield lambda: _say_done(its)
    finally:
        _say_done(its)
        os.close(its)
        if watcher:
            with suppress(ChildProcessError):
                os.waitpid(watcher, 0)


def _say_done(its: int) -> None:
    with suppress(OSError):
        os.write(its, DONE)


def _fork_watcher(ours: int, its: int, sentence: str, log: str | None) -> int:
    """The process of the watcher; 0 where there can be none."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    job = os.getpid()
    try:
        watcher = os.fork()
    except OSError:
        return 0
    finally:
        if os.getpid() == job:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if watcher:
        return watcher
    try:
        os.close(its)
        ends = [ours]
        # A child of the job may hold the pipe open, so the end of the job counts, where the kernel (5.3) tells it.
        with suppress(OSError):
            ends.append(os.pidfd_open(job))
        select.select(ends, [], [])
        os.set_blocking(ours, False)
        with suppress(OSError):
            if os.read(ours, 1) == DONE:
                os._exit(0)
        said = f"{sentence}\n".encode()
        os.write(2, said)
        if log:
            with Path(log).open("ab", buffering=0) as file:
                file.write(said)
    finally:
        os._exit(0)
