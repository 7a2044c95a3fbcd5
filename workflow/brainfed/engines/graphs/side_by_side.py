"""Institutions side by side: as many threads as torch may use, and every product on one of them.

A product of an institution is too small to share, and numbers do not depend on the number of threads.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

import torch

Tool = TypeVar("Tool")
Item = TypeVar("Item")
Found = TypeVar("Found")


class SideBySide(Generic[Tool]):
    """Threads that each hold a tool of their own while they work.

    Args:
        make: makes a tool, as memory to write into.
    """

    def __init__(self, make: Callable[[], Tool]) -> None:
        self._make = make
        self._tools: SimpleQueue[Tool] = SimpleQueue()

    def map(self, work: Callable[[Tool, Item], Found], items: Sequence[Item]) -> list[Found]:
        """`work` on every item, in the order of the items."""
        with _one_thread_each() as threads:
            count = min(threads, len(items))
            while self._tools.qsize() < count:
                self._tools.put(self._make())
            if count <= 1:
                return [self._with_tool(work, item) for item in items]
            with ThreadPoolExecutor(count) as pool:
                return list(pool.map(lambda item: self._with_tool(work, item), items))

    def _with_tool(self, work: Callable[[Tool, Item], Found], item: Item) -> Found:
        tool = self._tools.get()
        try:
            return work(tool, item)
        finally:
            self._tools.put(tool)


@contextmanager
def _one_thread_each() -> Iterator[int]:
    """Let torch use one thread an operation; gives the number that it used before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)
