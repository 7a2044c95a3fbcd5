"""Torch's optimisers of a private step, and their states as arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.privacy.schedule import PrivateSchedule


def make_optimiser(module: torch.nn.Module, schedule: PrivateSchedule) -> torch.optim.Optimizer:
    """The schedule's optimiser of all parameters."""
    rate, decay = schedule.learning_rate, schedule.weight_decay
    if schedule.optimiser == "adam":
        return torch.optim.Adam(module.parameters(), lr=rate, weight_decay=decay)
    return torch.optim.SGD(module.parameters(), lr=rate, weight_decay=decay, momentum=schedule.momentum)


def optimiser_arrays(optimiser: torch.optim.Optimizer) -> dict[str, NDArray[Any]]:
    """The state by `PARAMETER/NAME`, numbers of the parameters from 0."""
    return {
        f"{index}/{name}": np.asarray(torch.as_tensor(value).cpu())
        for index, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }


def restore_optimiser(optimiser: torch.optim.Optimizer, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Load `optimiser_arrays`."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, array in arrays.items():
        index, _, part = name.partition("/")
        state.setdefault(int(index), {})[part] = torch.from_numpy(np.array(array))
    optimiser.load_state_dict(optimiser.state_dict() | {"state": state})
