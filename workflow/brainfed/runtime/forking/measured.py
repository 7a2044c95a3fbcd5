"""What Snakemake measures of a job (`benchmark:`), where it is forked of a process that Snakemake did not start."""

from pathlib import Path
from typing import Any

from brainfed.runtime.forking.client import NAMED


def measure_forked_jobs() -> None:
    """Count the process of a forked job among the children of its client."""
    from snakemake.benchmark import BenchmarkTimer

    theirs = BenchmarkTimer.__init__
    if theirs.__module__ == __name__:
        return

    def watch(self: Any, *arguments: Any, **options: Any) -> None:
        theirs(self, *arguments, **options)
        children = self.main.children

        def with_forked(recursive: bool = False) -> list[Any]:
            found = children(recursive=recursive)
            return [*found, *(job for each in (self.main, *found) for job in _jobs_of(each.pid))]

        self.main.children = with_forked

    BenchmarkTimer.__init__ = watch


def _jobs_of(client: int) -> list[Any]:
    """The process that runs the script of a client, and its children; of any other process, none."""
    import psutil

    try:
        called = Path(f"/proc/{client}/comm").read_text(encoding="utf-8")
    except OSError:
        return []
    number = called.removeprefix(NAMED).strip()
    if not called.startswith(NAMED) or not number.isdecimal():
        return []
    try:
        job = psutil.Process(int(number))
        return [job, *job.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
