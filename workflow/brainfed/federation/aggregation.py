"""Weighted means over institutions (McMahan et al. 2017; FedNI Sec. III-C)."""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from torch import Tensor

Weighting = Literal["equal", "subjects"]


def institution_weights(samples: Tensor, weighting: Weighting) -> Tensor:
    """Weights that sum to one over the institutions that have training samples.

    Args:
        samples: (M, F) numbers of training samples; 0 excludes an institution from a fold.
        weighting: `equal` is FedNI's 1/M, `subjects` is FedAvg's n_m / n.

    Returns:
        (M, F); a column without participants is zero.
    """
    present = samples > 0
    raw = present.to(torch.float64) if weighting == "equal" else samples.to(torch.float64) * present
    return raw / raw.sum(dim=0, keepdim=True).clamp(min=1e-300)


def average(every: Sequence[Mapping[str, Tensor]], weights: Tensor) -> dict[str, Tensor]:
    """Weighted mean of the tensors (F, ...) of M institutions, by name; weights are (M, F)."""
    first, *others = every
    means = {}
    for name, tensor in first.items():
        shape = (*weights.shape, *(1 for _ in tensor.shape[1:]))
        weight = weights.to(tensor).reshape(shape)
        mean = weight[0] * tensor
        for place, other in enumerate(others, start=1):
            mean.addcmul_(weight[place].expand_as(mean), other[name])
        means[name] = mean
    return means
