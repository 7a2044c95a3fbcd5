"""The frame of every script around its one call: log, threads, device, and the end of the job."""

import logging
import os
import platform
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

import brainfed
from brainfed.runtime import Progress, UserError, configure, full_disk, imported_versions, is_full
from brainfed.runtime.devices import Lease, UnusableGpuError, lease, peak_gpu_memory, using_cuda
from brainfed.runtime.jobs._memory import (
    OWN_THREADS,
    is_out_of_memory,
    limits_here,
    out_of_memory,
    require_room,
    require_threads,
    watched,
)
from brainfed.runtime.jobs._stopping import return_to_queue, stoppable, stopped_by
from brainfed.runtime.records import Making, edited_code, is_neutral, roles_of

if TYPE_CHECKING:
    from brainfed.runtime.jobs._checkpoints import Checkpoint

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
INTERRUPTED = 130
STOPPED = "stopped by %s before the end; the same command goes on from the last round, or file, that was finished"

logger = logging.getLogger(__name__)


class NamedFiles(Protocol):
    """Snakemake's lists of files: each by its name, and all in the order of the rule."""

    def get(self, key: str, default: Any = None) -> Any:
        """The file or files of that name, if there is one."""

    def __getattr__(self, name: str) -> Any:
        """The file or files of that name."""

    def __iter__(self) -> Iterator[str]:
        """All files."""


class SnakemakeScript(Protocol):
    """The part of the `snakemake` object that a job reads; the one parameter `given` is a mapping of names to values.

    Attributes:
        scriptdir: the folder of the script.
    """

    log: Any
    input: Any
    output: Any
    params: Any
    resources: Any
    scriptdir: Any


@dataclass
class Job:
    """A running job.

    Attributes:
        lease: the devices that it holds.
        started: seconds of the monotonic clock when it got its devices; waiting for them does not count.
        threads: compute threads.
        params: the rule's parameters by name.
        progress: called with (done, total, what) after each unit of work.
        earlier: seconds of stopped processes that it continues.
    """

    lease: Lease
    started: float
    threads: int
    params: SimpleNamespace
    progress: Progress = field(default_factory=Progress)
    earlier: float = 0.0

    @property
    def device(self) -> str:
        """The torch device name."""
        return self.lease.device

    def seconds(self) -> float:
        """Seconds that the job has taken so far."""
        return self.earlier + time.monotonic() - self.started

    def checkpoint(self, output: str, digest: str) -> "Checkpoint":
        """The checkpoint beside `output` of the job that `digest` describes."""
        from brainfed.runtime.jobs._checkpoints import (  # imports numpy, which counts its threads
            Checkpoint,
            checkpoint_path,
        )

        edited = edited_code(is_neutral)
        key = f"{digest}{edited}"
        kept = Checkpoint(
            checkpoint_path(output, key), key, self.progress.name, self.seconds,
            is_current=lambda: edited_code(is_neutral) == edited,
        )  # fmt: skip
        self.earlier = kept.spent()
        return kept

    def timing(self) -> dict[str, float | str]:
        """Seconds so far, the largest memory so far (MiB; of a GPU too), and the device with its model.

        The seconds count all processes with rounds in the result, the memory this process alone.
        """
        measured: dict[str, float | str] = {
            "seconds": round(self.seconds(), 3),
            "peak_memory_mb": round(_peak_memory(), 1),
            "device": self.device,
        }
        if self.device != "cpu":
            import torch

            measured["device"] = f"{self.device} ({torch.cuda.get_device_name(self.device)})"
            measured["peak_gpu_memory_mb"] = round(peak_gpu_memory(), 1)
        return measured


@contextmanager
def run_job(
    snakemake: SnakemakeScript,
    *,
    gpu: bool = False,
    name_of: Callable[[Any], str] = lambda _: "",
    smaller: Callable[[str, str], str] = lambda *_: "fewer data",
) -> Iterator[Job]:
    """Run the body as a job of the workflow.

    A `UserError` ends it with its one sentence and exit code 1, and so do a full disk and memory that has run out; any
    other exception with a full traceback in the log, one line on stderr that names the log, and exit code 1; a stop
    (`runtime.jobs._stopping`) with one sentence and exit code 130, after all `finally` blocks.

    Args:
        snakemake: the object that Snakemake gives a script; its parameter `threads` (default 1) sets the
            compute threads, `resources.gpu` the number of GPUs.
        gpu: whether the job can use GPUs at all.
        name_of: wildcards -> what lines of progress call the job; empty: they name none.
        smaller: rule and entry point -> how to make the job smaller, for one whose memory has run out.
    """
    log = snakemake.log[0] if len(snakemake.log) else None
    given, rule = _given_and_rule(snakemake)
    threads = int(given.get("threads", 1))
    try:
        with watched(rule, log) as end_watch, stoppable(partial(_end_at_once, end_watch=end_watch)):
            _open_log(log)
            require_room(rule, threads)
            _limit_threads(threads)
            _check_package(snakemake.scriptdir)
            making = Making(given, roles_of(snakemake.input), list(snakemake.output))
            requested = int(snakemake.resources.get("gpu", 0)) if gpu else 0
            with lease(requested, purpose=str(Path(log).absolute()) if log else "") as leased:
                logger.info("%s: %s, %d thread(s)", platform.node(), leased.message, threads)
                if limited := limits_here():
                    logger.info("%s: libraries may end the job", limited)
                progress = Progress(name_of(getattr(snakemake, "wildcards", {})))
                with using_cuda(leased.uuids):
                    yield Job(leased, time.monotonic(), threads, SimpleNamespace(**given), progress)
            if edited := edited_code(is_neutral):
                logger.warning(
                    "the workflow's code, or its list in .snakemake, was edited during this run; the next start "
                    "computes this result again"
                )
            making.finish(imported_versions(), edited)
    except KeyboardInterrupt:
        if (refused := _refused_thread()) is not None:
            logger.error("%s", _error_message(refused, snakemake, log, smaller))
            raise SystemExit(1) from None
        logger.error(STOPPED, stopped_by())
        return_to_queue()
        raise SystemExit(INTERRUPTED) from None
    except BaseException as error:
        # A library in Rust panics where it gets no thread, with an exception that is no Exception.
        if not isinstance(error, Exception) and not is_out_of_memory(error):
            raise
        # A mistake of the program needs its traceback.
        is_bug = not (isinstance(error, UserError) or is_full(error) or is_out_of_memory(error))
        logger.error("%s", _error_message(error, snakemake, log, smaller), exc_info=is_bug)
        raise SystemExit(1) from None


def _given_and_rule(snakemake: SnakemakeScript) -> tuple[dict[str, Any], str]:
    """The rule's parameters by name, and its name."""
    return dict(snakemake.params.get("given", {})), str(getattr(snakemake, "rule", "this job"))


def _open_log(log: str | None) -> None:
    """Open the rule's log; on a full disk, warn and log to stderr alone."""
    try:
        configure(log)
    except OSError as error:
        if log is None or not is_full(error):
            raise
        configure(None)
        logger.warning("%s", full_disk(Path(log), 0, 0))


def _end_at_once(by: str, end_watch: Callable[[], None] = lambda: None) -> None:
    """End a job that a library keeps from stopping; the thread that is held up may hold the log's lock, too."""
    end_watch()
    with suppress(OSError):
        os.write(2, f"{STOPPED % by}\n".encode())
    return_to_queue(held_up=True)
    os._exit(INTERRUPTED)


def _refused_thread() -> RuntimeError | None:
    """Why no thread can be started, if so, after a SIGINT: OpenBLAS sends it to its own process where it gets none."""
    try:
        if stopped_by() == signal.SIGINT.name:
            require_threads(OWN_THREADS)
    except RuntimeError as error:
        return error
    return None


def _error_message(
    error: BaseException, snakemake: SnakemakeScript, log: str | None, smaller: Callable[[str, str], str]
) -> str:
    if isinstance(error, UnusableGpuError):
        return str(error)
    given, rule = _given_and_rule(snakemake)
    # A reader that ran out of memory reports its file as damaged.
    for cause in (error, error.__cause__):
        if cause is not None and is_out_of_memory(cause):
            asked = int(snakemake.resources.get("mem_mb", 0))
            return out_of_memory(cause, rule, smaller(rule, str(given.get("entry", ""))), _peak_memory(), asked)
    if isinstance(error, UserError):
        return str(error)
    if is_full(error):
        named = getattr(error, "filename", None) or log or "."
        return str(full_disk(Path(os.fsdecode(named)), 0, 0))
    where = f"; the traceback is in {log}" if log else ""
    # Libraries that get no memory fail in many ways.
    limited = f"; {limits}, which may be why: raise the limit, and try again" if (limits := limits_here()) else ""
    return f"{type(error).__name__}: {error}{where}{limited}"


def _limit_threads(threads: int) -> None:
    """Set the threads of the numerical libraries, imported now or later."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(limits=threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def _check_package(scripts: Path | str) -> None:
    """Refuse to run an installed copy of the package in place of the one beside the scripts."""
    beside = Path(scripts).resolve().parent / "brainfed" / "__init__.py"
    imported = Path(brainfed.__file__ or "").resolve()
    if beside.exists() and not beside.samefile(imported):
        raise UserError(
            f"brainfed: this workflow's package is {beside.parent}, Python imported {imported.parent}; "
            "uninstall that copy (pip uninstall brainfed), or install this one (pip install -e .)."
        )


def _peak_memory() -> float:
    """The largest resident memory of this process so far, MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # getrusage would include the memory that the parent process held when it started this one.
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1024**2 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
