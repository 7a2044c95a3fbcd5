"""The geometric median of models by Weiszfeld's iterations (Pillutla et al. 2022, RFA)."""

import torch
from torch import Tensor

STEPS = 100
"""Most iterations; RFA has three or so."""

NEAREST = 1e-6
"""Smallest distance that a weight is divided by, in distances of the first iteration (RFA's smoothing nu)."""

TOLERANCE = 1e-8
"""Step at which iterations end, in the same unit."""


def geometric_median(stack: Tensor, weights: Tensor) -> Tensor:
    """(F, ...) points of the smallest weighted sum of distances to the models, from their mean on.

    Args:
        stack: (M, F, ...) models, all tensors of a model together.
        weights: (M, F) that sum to one over institutions; 0 excludes a model.
    """
    found = torch.zeros_like(stack[0])
    for fold, share in enumerate(weights.to(stack.device, torch.float64).T):
        own = share > 0
        if own.any():
            found[fold] = _weiszfeld(stack[own, fold].double(), share[own])
    return found


def _weiszfeld(rows: Tensor, weights: Tensor) -> Tensor:
    """(...) the median of rows (m, ...)."""
    shape, rows = rows.shape[1:], rows.reshape(len(rows), -1)
    centre = weights @ rows / weights.sum()
    unit = float((rows - centre).norm(dim=1).mean())
    for _ in range(STEPS if unit > 0 else 0):
        pull = weights / (rows - centre).norm(dim=1).clamp(min=NEAREST * unit)
        before, centre = centre, pull @ rows / pull.sum()
        if float((centre - before).norm()) <= TOLERANCE * unit:
            break
    return centre.reshape(shape)
