"""Waiting for what another process does."""

import time
from collections.abc import Callable
from pathlib import Path

HANGS_AFTER_S = 600
"""Longer than a hundred times what anything takes on a quiet machine: nothing that waits this long will ever come.

A process that a test ends sleeps for an hour: if it ended by itself within this limit, the test could not fail.
"""


def until_true(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + HANGS_AFTER_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def until_it_sleeps(process: int) -> None:
    """Wait until the main thread of a process has slept at ten looks in a row."""
    looks = [""]

    def sleeps() -> bool:
        looks.append(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0])
        return looks[-10:] == ["S"] * 10

    until_true(sleeps)
