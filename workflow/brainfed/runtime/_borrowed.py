"""Functions of Snakemake and of other libraries that brainfed replaces, though they are not part of a public interface.

Each is asked for here, by its place and its parameters. If the library has another one, the run says so once and goes
on without it; `docs/reference/borrowed.md` lists what it lacks then.
"""

import inspect
import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module, metadata
from threading import Timer
from time import monotonic
from typing import Any, Final

NAMES: Final = {"snakemake": "Snakemake", "flwr": "Flower", "opacus": "Opacus"}


def borrowed(place: str, parameters: Sequence[str] | None, without: str) -> Any:
    """What has a function with these parameters; None if nothing has, after a sentence on stderr.

    Args:
        place: `module:Class.function`, whose class is returned, or `module:function`, whose module is.
        parameters: names of the function's parameters; None: any, as what takes its place passes them on.
        without: what a run lacks then, as the end of a sentence.
    """
    module, _, name = place.partition(":")
    owner_name, _, function_name = name.rpartition(".")
    try:
        owner = import_module(module)
        owner = getattr(owner, owner_name) if owner_name else owner
        there = tuple(inspect.signature(getattr(owner, function_name)).parameters)
    except (ImportError, AttributeError, TypeError, ValueError):
        there = None
    if there is not None and (parameters is None or there == tuple(parameters)):
        return owner
    asked = name if parameters is None else f"{name}({', '.join(parameters)})"
    library = module.partition(".")[0]
    lock = "requirements-sites.lock" if library == "flwr" else "requirements.lock"
    print(
        f"{NAMES.get(library, library)} {metadata.version(library)}: expected {asked} in {module}, found "
        f"{'none' if there is None else ', '.join(there)}; {without}. {lock} names a version that has it.",
        file=sys.stderr,
    )
    return None


@cache
def keep_one_timer() -> None:
    """Let Snakemake's scheduler have one timer at a time.

    It looks for jobs when one has ended, and again after the time span of its limit on jobs, which is a second. Each
    look starts a timer, and that timer causes the next look. So every job that ends would add a chain of timers: after
    150 jobs Snakemake would look, and start a thread, 150 times a second. The process would wait for the last of them.
    """
    scheduler = borrowed(
        "snakemake.scheduling.job_scheduler:JobScheduler._schedule_reevalutation",
        ("self", "delay"),
        "after many jobs, this process looks for new ones more often than it needs to",
    )
    if scheduler is not None:
        scheduler._schedule_reevalutation = _look_again


def _look_again(self: Any, delay: float) -> None:
    """Have the scheduler look again so many seconds from now; called by its own thread alone."""
    self._look_at = monotonic() + delay
    if not getattr(self, "_timer_runs", False):
        _start(self, delay)


def _start(scheduler: Any, delay: float) -> None:
    scheduler._timer_runs = True
    timer = Timer(delay, _ended, (scheduler,))
    timer.daemon = True
    timer.start()


def _ended(scheduler: Any) -> None:
    """At a timer's end, let the scheduler look, and start the timer of a later request."""
    left = scheduler._look_at - monotonic()
    if left > 0:
        _start(scheduler, left)
    else:
        scheduler._timer_runs = False
    scheduler._open_jobs.release()
