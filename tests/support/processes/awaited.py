"""Waiting for what another process does."""

import time
from collections.abc import Callable

HANGS_AFTER_S = 600
"""Longer than a hundred times what anything takes on a quiet machine: nothing that waits this long will ever come."""


def until_true(condition: Callable[[], object]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + HANGS_AFTER_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
