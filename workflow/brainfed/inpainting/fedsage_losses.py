"""FedSage+'s losses of the generator: smooth-L1 of the count, nearest missing neighbour of the features.

Zhang et al. 2021, eq. 2: every generated vector is compared with the nearest of the node's true missing neighbours.
Where a node has none the loss is zero. [choice] The mean is over all visible nodes, slots and features.
"""

import torch
from torch import Tensor
from torch.nn.functional import mse_loss, smooth_l1_loss


def count_loss(predicted: Tensor, true: Tensor) -> Tensor:
    """Mean smooth-L1 distance of (v,) predicted and true numbers of missing neighbours."""
    return smooth_l1_loss(predicted, true)


@torch.no_grad()
def nearest_missing(generated: Tensor, missing: Tensor, neighbours: Tensor) -> Tensor:
    """(t, slots) the row of `missing` that is nearest to each generated vector among its node's neighbours.

    ||x - y||^2 = ||x||^2 - 2 x.y + ||y||^2, whose first term is the same for all candidates: one
    matrix product and no tensor of (t, slots, slots, d).

    Args:
        generated: (t, slots, d).
        missing: (h, d) true features of hidden nodes.
        neighbours: (t, h) bool, at least one in each row.
    """
    slots, features = generated.shape[1:]
    product = (generated.reshape(-1, features) @ missing.T).view(-1, slots, len(missing))
    distance = missing.square().sum(dim=1) - 2 * product
    return distance.masked_fill(~neighbours[:, None, :], float("inf")).argmin(dim=2)


def feature_loss(generated: Tensor, missing: Tensor, neighbours: Tensor, visible: int) -> Tensor:
    """Mean squared error of every generated vector to its nearest missing neighbour.

    Args:
        generated: (t, slots, d) of the nodes that miss neighbours.
        missing: (h, d) true features of hidden nodes.
        neighbours: (t, h) bool, at least one in each row.
        visible: number of visible nodes v >= t; those that miss nobody count with zero.
    """
    slots, features = generated.shape[1:]
    if len(generated) == 0:
        return generated.sum()
    nearest = missing[nearest_missing(generated, missing, neighbours)]
    return mse_loss(generated, nearest, reduction="sum") / (visible * slots * features)
