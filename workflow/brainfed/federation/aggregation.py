"""Server-side aggregation of stacked tensors (institutions, folds, ...): FedAvg, FedNI Sec. III-C."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

Weighting = Literal["equal", "subjects"]


def institution_weights(training_counts: Tensor, chosen: Tensor, weighting: Weighting) -> Tensor:
    """Weights that sum to one over the chosen institutions that have training subjects.

    Args:
        training_counts: (M, F) labelled training subjects; 0 takes an institution out of a fold.
        chosen: (M,) bool, the institutions drawn for this round.
        weighting: `equal` is FedNI's 1/M, `subjects` is FedAvg's n_m / n.

    Returns:
        (M, F); a column without any participant is all zero.
    """
    present = (training_counts > 0) & chosen[:, None]
    raw = present.to(torch.float64) if weighting == "equal" else training_counts.to(torch.float64) * present
    return raw / raw.sum(dim=0, keepdim=True).clamp(min=1e-300)


def average(stacks: Mapping[str, Tensor], weights: Tensor) -> dict[str, Tensor]:
    """Weighted mean over institutions of tensors (M, F, ...) -> (F, ...)."""
    means = {}
    for name, stack in stacks.items():
        shape = (*weights.shape, *(1 for _ in stack.shape[2:]))
        weight = weights.to(stack).reshape(shape)
        mean = weight[0] * stack[0]
        for institution in range(1, stack.shape[0]):
            mean.addcmul_(weight[institution].expand_as(mean), stack[institution])
        means[name] = mean
    return means
