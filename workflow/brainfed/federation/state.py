"""What the rounds train, what they leave behind, and how both survive an interruption."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.adam import Adam
from brainfed.federation.exchange import Ledger
from brainfed.runtime.jobs.checkpoints import Checkpoint
from brainfed.runtime.jobs.stopping import stop_asked

CHECKPOINT_SECONDS = 20
CHECKPOINT_SHARE = 0.05


@dataclass
class Pace:
    """When to write a state: at most every `least` seconds and 5 % of the time, and before the job is stopped."""

    least: float = CHECKPOINT_SECONDS
    _last: float = field(default_factory=time.monotonic)
    _cost: float = 0.0

    def due(self) -> bool:
        """Whether the next state is worth its writing."""
        return stop_asked() or time.monotonic() - self._last >= max(self.least, self._cost / CHECKPOINT_SHARE)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Take the time of one writing."""
        start = time.monotonic()
        yield
        self._last = time.monotonic()
        self._cost = self._last - start


class StackedModel(Protocol):
    """What the rounds need of a model stacked over institutions and folds."""

    def parameters(self) -> list[torch.nn.Parameter]:
        """All learnable tensors."""

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of them by name."""

    def training_step(self, labels: Tensor, chosen: Tensor) -> Tensor:
        """Fill every gradient; (M, F) losses."""

    def probabilities(self) -> Tensor:
        """(M, F, n) by each institution's own model."""

    def load(self, values: dict[str, Tensor]) -> None:
        """Take tensors (F, ...) or (M, F, ...)."""


@runtime_checkable
class DrawingModel(Protocol):
    """A model that draws in each step, and is told which step it is, so that a resumed run draws the same."""

    def draw_anew(self, round_index: int, epoch: int, step: int) -> None:
        """Key the draws of the next step."""


@dataclass(frozen=True)
class Curves:
    """What the rounds leave behind.

    Attributes:
        probabilities: (T, M, F, n) after every round, each institution by the model that it then holds.
        losses: (T, M, F) training loss, mean over the round's local steps that had a labelled subject; NaN where an
            institution had none, or sat out.
    """

    probabilities: NDArray[np.float64]
    losses: NDArray[np.float64]


def save_state(
    model: StackedModel,
    optimiser: Adam,
    curves: Curves,
    checkpoint: Checkpoint,
    number: int,
    ledger: Ledger,
    *,
    shared: bool,
    keeps: bool,
) -> None:
    """Keep the state after round `number`: one model where all share it, Adam's moments where it keeps them."""
    if checkpoint.path is None:
        return
    slots = slice(0, 1) if shared else slice(None)
    arrays = {f"model/{name}": stack[slots].cpu().numpy() for name, stack in model.stacks().items()}
    if keeps:
        arrays |= {f"optimiser/{name}": array for name, array in optimiser.arrays().items()}
    arrays["probabilities"] = curves.probabilities[: number + 1]
    arrays["losses"] = curves.losses[: number + 1]
    checkpoint.save(number, arrays, {"crossings": list(ledger.rows())})


@torch.no_grad()
def resume_state(model: StackedModel, optimiser: Adam, curves: Curves, checkpoint: Checkpoint, ledger: Ledger) -> int:
    """Take up what `save_state` kept; the number of the first round that is still to run."""
    found = checkpoint.load(of=len(curves.losses))
    if found is None:
        return 0
    number, arrays, metadata = found
    curves.probabilities[: number + 1] = arrays["probabilities"]
    curves.losses[: number + 1] = arrays["losses"]
    ledger.restore(metadata["crossings"])
    model.load({name.removeprefix("model/"): torch.from_numpy(arrays[name]) for name in arrays if "model/" in name})
    held = {name.removeprefix("optimiser/"): arrays[name] for name in arrays if name.startswith("optimiser/")}
    if held:
        optimiser.load(held)
    return number + 1
