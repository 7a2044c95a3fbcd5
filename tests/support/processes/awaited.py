"""Waiting for what another process does."""

import time
from collections.abc import Callable


def until_true(condition: Callable[[], bool]) -> None:
    """Wait five seconds at most for a condition."""
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
