"""The count loss of FedSage+'s generator, and the nearest missing neighbours of its feature loss (in `wide`)."""

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss


def count_loss(predicted: Tensor, true: Tensor) -> Tensor:
    """FedSage+ L^d: mean smooth-L1 distance of (v,) predicted and true numbers of missing neighbours."""
    return smooth_l1_loss(predicted, true)


def nearest_missing(products: Tensor, squares: Tensor, neighbours: Tensor) -> Tensor:
    """(t, slots) rows of the missing neighbours nearest to each generated vector.

    ||x - y||^2 = ||x||^2 - 2 x.y + ||y||^2 with the same first term for all candidates: one matrix product, and no
    tensor (t, slots, slots, d).

    Args:
        products: (t, slots, h) of generated vectors with missing nodes, x.y.
        squares: (h,) of the missing nodes, ||y||^2.
        neighbours: (t, h) bool, at least one in each row.
    """
    if len(products) == 0:
        return torch.zeros(products.shape[:2], dtype=torch.int64, device=products.device)
    return (squares - 2 * products).masked_fill(~neighbours[:, None, :], float("inf")).argmin(dim=2)
