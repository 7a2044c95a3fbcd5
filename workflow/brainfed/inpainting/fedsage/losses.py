"""FedSage+'s losses of the generator: smooth-L1 of the count, nearest missing neighbour of the features.

The features' own loss and its gradient are in `fedsage_wide`.

Zhang et al. 2021, eq. 2: every generated vector is compared with the nearest of the node's true missing neighbours.
Where a node has none the loss is zero. [choice] The mean is over all visible nodes, slots and features.
"""

import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss


def count_loss(predicted: Tensor, true: Tensor) -> Tensor:
    """Mean smooth-L1 distance of (v,) predicted and true numbers of missing neighbours."""
    return smooth_l1_loss(predicted, true)


def nearest_missing(products: Tensor, squares: Tensor, neighbours: Tensor) -> Tensor:
    """(t, slots) which missing node is nearest to each generated vector among its node's neighbours.

    ||x - y||^2 = ||x||^2 - 2 x.y + ||y||^2, whose first term is the same for all candidates: one
    matrix product and no tensor of (t, slots, slots, d).

    Args:
        products: (t, slots, h) of generated vectors with missing nodes, x.y.
        squares: (h,) of the missing nodes, ||y||^2.
        neighbours: (t, h) bool, at least one in each row.
    """
    if len(products) == 0:
        return torch.zeros(products.shape[:2], dtype=torch.int64, device=products.device)
    return (squares - 2 * products).masked_fill(~neighbours[:, None, :], float("inf")).argmin(dim=2)
