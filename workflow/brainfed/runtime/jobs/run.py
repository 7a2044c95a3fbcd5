"""How a method job runs: device, precision, checkpoint, progress."""

import logging
from dataclasses import dataclass
from typing import Literal, Protocol

from brainfed.runtime.jobs.checkpoints import Checkpoint

logger = logging.getLogger(__name__)


class Reports(Protocol):
    """Hears of units of work that are finished."""

    def __call__(self, done: int, total: int, what: str, *, at_most: bool = False) -> None:
        """Note that `done` of `total` units are finished, or of at most so many."""


def _log(done: int, total: int, what: str, *, at_most: bool = False) -> None:
    logger.info("%s %d/%s%d", what, done, "at most " if at_most else "", total)


@dataclass(frozen=True)
class Run:
    """Settings of the machine, never of the science.

    Attributes:
        device: a torch device name.
        precision: `float64` is for the equivalence tests.
        checkpoint: holds the state after the last finished round; without a path it keeps nothing.
        progress: called after each unit of work.
        keeps_models: whether the method returns the model of every fold.
    """

    device: str = "cpu"
    precision: Literal["float32", "float64"] = "float32"
    checkpoint: Checkpoint = Checkpoint(None, "")
    progress: Reports = _log
    keeps_models: bool = False
