"""What Snakemake measures of a job (`benchmark:`), where it is forked from a process that Snakemake did not start."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from brainfed.runtime.forking.client import NAMED


def measure_forked_jobs() -> None:
    """Count the process of a forked job among the children of its client.

    A client has no others, so Snakemake need not look for them: it would read the state of every process of the machine
    twice a second.
    """
    from snakemake.benchmark import BenchmarkTimer

    theirs = BenchmarkTimer.__init__
    if theirs.__module__ == __name__:
        return

    def watch(self: Any, *arguments: Any, **options: Any) -> None:
        theirs(self, *arguments, **options)
        children = self.main.children

        def with_forked(recursive: bool = False) -> list[Any]:
            own = list(_jobs_of(self.main.pid))
            if own:
                return own
            processes = children(recursive=recursive)
            return [*processes, *(job for each in processes for job in _jobs_of(each.pid))]

        self.main.children = with_forked

    BenchmarkTimer.__init__ = watch


def _jobs_of(client: int) -> Iterator[Any]:
    """The process that runs the script of a client, and its descendants; of any other process, none."""
    import psutil

    try:
        called = Path(f"/proc/{client}/comm").read_text(encoding="utf-8")
    except OSError:
        return
    number = called.removeprefix(NAMED).strip()
    waiting = [int(number)] if called.startswith(NAMED) and number.isdecimal() else []
    while waiting:
        process = waiting.pop()
        try:
            yield psutil.Process(process)
            for thread in Path(f"/proc/{process}/task").iterdir():
                waiting += map(int, (thread / "children").read_text(encoding="ascii").split())
        except (psutil.NoSuchProcess, OSError):
            continue
