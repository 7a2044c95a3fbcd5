"""One run at a time writes a folder of results, from whichever clone it was started."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from brainfed.runtime.errors import UserError
from brainfed.runtime.folder_lock import folder_lock

_asked: dict[str, Callable[[], Iterable[Path]]] = {}


def run_alone(name: str, locks: Callable[[], Iterable[Path]]) -> None:
    """Let a run of Snakemake hold these locks from its plan to its end.

    Snakemake's own lock lies in `.snakemake` of the folder where it was started, so it does not see another clone that
    writes the same results. A dry run, `--unlock`, `--nolock` and the processes of jobs take no lock.

    Args:
        name: of a workflow; two that one Snakefile imports hold the locks of both.
        locks: the lock files when the run begins.
    """
    from snakemake.exceptions import WorkflowError
    from snakemake.workflow import Workflow

    theirs = Workflow.execute
    _asked[name] = locks
    if theirs.__module__ == __name__:
        return

    def execute(workflow: Any, executor_plugin: Any, *arguments: Any, **named: Any) -> Any:
        writes = workflow.is_main_process and not executor_plugin.common_settings.dryrun_exec
        with ExitStack() as held:
            if writes and workflow.execution_settings.lock:
                try:
                    hold(held, (lock for asked in _asked.values() for lock in asked()))
                except UserError as error:
                    raise WorkflowError(str(error)) from None
            return theirs(workflow, executor_plugin, *arguments, **named)

    Workflow.execute = execute


def hold(held: ExitStack, locks: Iterable[Path]) -> None:
    """Hold these locks as long as `held` is open.

    Raises:
        UserError: another run holds one of them.
    """
    # All runs ask in one order, so one of two that begin together has all.
    for lock in sorted({lock.parent.resolve() / lock.name for lock in locks}):
        held.enter_context(
            folder_lock(
                lock, "run that writes these results", "wait until it ends, or give this folder results of its own"
            )
        )
