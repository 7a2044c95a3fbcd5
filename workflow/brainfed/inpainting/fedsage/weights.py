"""Weights of a module as arrays, and modules with given tensors as weights."""

from collections.abc import Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.models.fedsage_generator import FeatureGenerator, GeneratorShape


def arrays_of(module: torch.nn.Module, prefix: str = "") -> dict[str, NDArray[Any]]:
    """All weights, `{prefix}{name}`, on the host."""
    return {f"{prefix}{name}": value.detach().cpu().numpy() for name, value in module.state_dict().items()}


@torch.no_grad()
def load_arrays(module: torch.nn.Module, arrays: Mapping[str, NDArray[Any]], prefix: str = "") -> None:
    """Copy weights from `arrays_of`."""
    for name, value in module.state_dict().items():
        value.copy_(torch.from_numpy(arrays[f"{prefix}{name}"]))


def feature_generator(shape: GeneratorShape, weights: Mapping[str, Tensor]) -> FeatureGenerator:
    """A module with these tensors as its parameters, without copies."""
    with torch.device("meta"):
        fgen = FeatureGenerator(shape)
    fgen.load_state_dict(dict(weights), assign=True)
    return fgen
