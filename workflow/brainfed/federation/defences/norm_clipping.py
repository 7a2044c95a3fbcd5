"""Means of updates that are clipped to their median length (Sun et al. 2019, with a bound that needs no setting)."""

import torch
from torch import Tensor

from brainfed.federation.defences.elementwise import median


def norm_clipping(stack: Tensor, weights: Tensor, last: Tensor) -> Tensor:
    """(F, ...) the last model plus the weighted mean of the updates, none longer than the median of their norms.

    Args:
        stack: (M, F, ...) models, all tensors of a model together.
        weights: (M, F) that sum to one over institutions; 0 excludes a model.
        last: (F, ...) the model that the round began with.
    """
    shares = weights.to(stack.device, torch.float64)
    updates = (stack - last).reshape(*stack.shape[:2], -1).double()
    norms = updates.norm(dim=2)
    shares = shares * (median(norms, weights > 0) / norms.clamp(min=torch.finfo(norms.dtype).tiny)).clamp(max=1)
    return last + torch.einsum("mf,mfp->fp", shares, updates).reshape(last.shape).to(last)
