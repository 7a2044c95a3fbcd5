"""How a method job runs: device, precision, checkpoint, progress."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.jobs.checkpoints import Checkpoint

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """Settings of the machine, never of the science.

    Attributes:
        device: a torch device name.
        precision: `float64` is for the equivalence tests.
        checkpoint: holds the state after the last finished round; without a path it keeps nothing.
        progress: called with (done, total, what) after each unit of work.
        keeps_models: whether the method returns the model of every fold.
    """

    device: str = "cpu"
    precision: Literal["float32", "float64"] = "float32"
    checkpoint: Checkpoint = Checkpoint(None, "")
    progress: Callable[[int, int, str], None] = lambda done, total, what: logger.info("%s %d/%d", what, done, total)
    keeps_models: bool = False
