"""The state of a half-trained set of FedSage+ generators, kept so that a killed job resumes to the same bytes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.federation.adam import Adam
from brainfed.federation.ledger import Ledger
from brainfed.models.fedsage_generator import MissingNeighbourGenerator
from brainfed.runtime.jobs.checkpoints import Checkpoint

ADAM = "adam/"

HistoryRow = tuple[int, int, str, float]


@dataclass
class TrainingState:
    """What changes while the generators train.

    Attributes:
        generators: by institution's code; they never meet.
        ledger: what has crossed.
        history: (institution, round, loss, value) so far.
        optimiser: of the owner that trains; None before the first step.
        done: number of steps done, over all owners.
    """

    generators: Mapping[int, MissingNeighbourGenerator]
    ledger: Ledger
    history: list[HistoryRow] = field(default_factory=list)
    optimiser: Adam | None = None
    done: int = 0

    def save(self, checkpoint: Checkpoint) -> None:
        """Keep everything that later steps depend on; losses as an array, for one that diverged is not JSON."""
        if checkpoint.path is None:
            return
        arrays = arrays_of(self.generators)
        if self.optimiser is not None:
            arrays |= {f"{ADAM}{name}": array for name, array in self.optimiser.arrays().items()}
        arrays["history"] = np.array([value for *_, value in self.history])
        metadata = {"crossings": list(self.ledger.rows()), "history": [row[:3] for row in self.history]}
        checkpoint.save(self.done - 1, arrays, metadata)

    def resume(self, checkpoint: Checkpoint) -> dict[str, NDArray[Any]]:
        """Take up what was kept; the arrays from which `optimiser_arrays` picks Adam's, none without a kept state."""
        found = checkpoint.load("step")
        if found is None:
            return {}
        last, arrays, metadata = found
        self.done = last + 1
        load_arrays(self.generators, arrays)
        self.ledger.restore(metadata["crossings"])
        rows = zip(metadata["history"], arrays["history"], strict=True)
        self.history = [(int(code), int(number), str(loss), float(value)) for (code, number, loss), value in rows]
        return arrays


def optimiser_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What a kept state holds of `Adam.arrays`."""
    return {name.removeprefix(ADAM): array for name, array in arrays.items() if name.startswith(ADAM)}


def arrays_of(generators: Mapping[int, MissingNeighbourGenerator]) -> dict[str, NDArray[Any]]:
    """All weights, `{institution}/{name}`."""
    return {
        f"{institution}/{name}": value.detach().cpu().numpy()
        for institution, generator in generators.items()
        for name, value in generator.state_dict().items()
    }


@torch.no_grad()
def load_arrays(generators: Mapping[int, MissingNeighbourGenerator], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Take the weights that `arrays_of` gave."""
    for institution, generator in generators.items():
        for name, value in generator.state_dict().items():
            value.copy_(torch.from_numpy(arrays[f"{institution}/{name}"]))
