"""What networks on a subject's graph of regions share: the edge importance and the keyed start.

Activations are (subjects, channels, ..., regions): the regions are the last axis, so that one product with the
adjacency serves all channels and time points of a subject.
"""

import torch
from torch import Tensor, nn

from brainfed.runtime.streams import Streams

IMPORTANCE = "importance.weight"
"""Name of the learnt edge importance among a network's parameters."""


class EdgeImportance(nn.Module):
    """A * (M^2 + (M^2)^T) / 2 with squares by entry: positive and symmetric weights of the edges (Gadgil et al. 2020).

    One M serves all blocks. It starts at one, which leaves A as it is. All other weights of a network treat the regions
    alike, so that without it no region differs from another but by its place in the graph.

    Args:
        regions: R.
    """

    def __init__(self, regions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(regions, regions))

    def forward(self, adjacency: Tensor) -> Tensor:
        """(B, R, R) from normalised adjacencies (B, R, R)."""
        squares = self.weight.square()
        return adjacency * ((squares + squares.T) / 2)


def normalisation(channels: int, groups: int) -> nn.GroupNorm:
    """Moments of one subject, over its regions, its time points and a group's channels; scale and shift by channel.

    In a group of its own a channel's mean would be the same for all subjects.
    """
    return nn.GroupNorm(groups, channels)


def matrix(*shape: int) -> nn.Parameter:
    """A weight (outputs, inputs, ...), before `start`."""
    return nn.Parameter(torch.zeros(shape))


@torch.no_grad()
def start(network: nn.Module, streams: Streams, fold: int) -> None:
    """Set the initial weights of `fold`: uniform in +- 1 / sqrt(inputs), biases zero, scales and importance one."""
    for name, weight in network.named_parameters():
        if name.endswith("bias"):
            weight.zero_()
        elif weight.dim() == 1 or name == IMPORTANCE:
            weight.fill_(1.0)
        else:
            bound = weight[0].numel() ** -0.5
            generator = torch.Generator().manual_seed(streams.key("initial-weights", fold, name, *weight.shape))
            weight.copy_(torch.empty(weight.shape, dtype=torch.float32).uniform_(-bound, bound, generator=generator))
