"""Networks on a subject's graph of regions: FGLBC's ST-GCN, and the graph network that it is compared with."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, pad, relu

from brainfed.models._classifier import parameter, uniform_start
from brainfed.runtime import Streams

# What networks on a subject's graph of regions share: the edge importance and the keyed start.
#
# Activations are (subjects, channels, ..., regions): the regions are the last axis, so that one product with the
# adjacency serves all channels and time points of a subject.

IMPORTANCE = "importance.weight"
"""Name of the learnt edge importance among a network's parameters."""


class EdgeImportance(nn.Module):
    """A * (M^2 + (M^2)^T) / 2 with squares by entry: positive and symmetric weights of the edges (Gadgil et al. 2020).

    One M (R, R) serves all blocks. It starts at one, which leaves A as it is. All other weights of a network treat the
    regions alike, so that without it no region differs from another but by its place in the graph.
    """

    def __init__(self, regions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(regions, regions))

    def forward(self, adjacency: Tensor) -> Tensor:
        """(B, R, R) from normalised adjacencies (B, R, R)."""
        squares = self.weight.square()
        return adjacency * ((squares + squares.T) / 2)


class RegionNetwork(nn.Module):
    """A network of R regions that may learn the weights of edges.

    All layers see one subject at a time: no logit depends on the other subjects of a batch, and each subject has a
    gradient of its own. GroupNorm's moments are those of one subject, over its regions, its time points and a group's
    channels; in a group of its own a channel's mean would be the same for all subjects.
    """

    def __init__(self, regions: int, *, edge_importance: bool) -> None:
        super().__init__()
        self.importance = EdgeImportance(regions) if edge_importance else None

    def edges(self, adjacency: Tensor) -> Tensor:
        """(B, R, R) normalised adjacencies with the learnt weights."""
        return adjacency if self.importance is None else self.importance(adjacency)

    @torch.no_grad()
    def start(self, streams: Streams, fold: int, place: int = 0) -> None:  # noqa: ARG002
        """Set the initial weights, the same for every institution of a fold.

        Weights are uniform in +- 1 / sqrt(inputs), biases zero, scales and importance one.
        """
        for name, weight in self.named_parameters():
            if name.endswith("bias"):
                weight.zero_()
            elif weight.dim() == 1 or name == IMPORTANCE:
                weight.fill_(1.0)
            else:
                bound = weight[0].numel() ** -0.5
                weight.copy_(uniform_start(streams, weight.shape, bound, fold, name, *weight.shape))


# The graph network without temporal convolution that FGLBC is compared with (FedGNN; Chen and Su 2024, Table 1).


class RegionGNN(RegionNetwork):
    """Graph convolutions -> mean over R regions -> FC(hidden, C); a region's features are its window of T values.

    A layer is relu(GroupNorm(P H W)).
    """

    def __init__(
        self,
        regions: int,
        window: int,
        classes: int,
        hidden: int = 64,
        layers: int = 3,
        groups: int = 2,
        *,
        edge_importance: bool = True,
    ) -> None:
        super().__init__(regions, edge_importance=edge_importance)
        widths = [window] + [hidden] * layers
        self.convolutions = nn.ModuleList(GraphConvolution(*width, groups) for width in pairwise(widths))
        self.readout = nn.Linear(hidden, classes)

    def forward(self, windows: Tensor, adjacency: Tensor) -> Tensor:
        """Logits (B, C) from windows (B, T, R) and symmetric normalised adjacencies (B, R, R) of B subjects."""
        hidden, edges = windows, self.edges(adjacency)
        for convolution in self.convolutions:
            hidden = convolution(hidden, edges)
        logits: Tensor = self.readout(hidden.mean(dim=2))
        return logits


class GraphConvolution(nn.Module):
    """relu(GroupNorm(P H W)), multiplied by P where there are fewer channels."""

    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.channels = nn.Conv1d(inputs, outputs, 1, bias=False)
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """(B, outputs, R) from features (B, inputs, R) and P (B, R, R)."""
        if self.inputs <= self.outputs:
            return relu(self.norm(self.channels(torch.bmm(features, adjacency))))
        return relu(self.norm(torch.bmm(self.channels(features), adjacency)))


# The spatio-temporal graph convolutional network of FGLBC (Chen and Su 2024, eq. 4 and 5; Gadgil et al. 2020).


class STGCN(RegionNetwork):
    """Blocks of spatial and temporal convolution -> mean over time and regions -> FC(channels, C).

    The paper's sigmoid is the softmax of two logits.

    Args:
        regions: R.
        classes: C.
        channels: of every block; the input has one.
        kernel: time points of a temporal convolution, an odd number.
        strides: time points from one output to the next, one a block.
        edge_importance: whether the weights of edges are learnt (`EdgeImportance`).
    """

    def __init__(
        self,
        regions: int,
        classes: int,
        channels: int = 64,
        kernel: int = 11,
        strides: tuple[int, ...] = (1, 1, 1),
        groups: int = 2,
        *,
        edge_importance: bool = True,
    ) -> None:
        super().__init__(regions, edge_importance=edge_importance)
        widths = [1] + [channels] * len(strides)
        blocks = (
            Block(*width, kernel, stride, groups) for width, stride in zip(pairwise(widths), strides, strict=True)
        )
        self.blocks = nn.ModuleList(blocks)
        self.readout = nn.Linear(channels, classes)

    def forward(self, windows: Tensor, adjacency: Tensor) -> Tensor:
        """Logits (B, C) from z-scored series (B, T, R) of B subjects; T may differ from call to call.

        Adjacencies (B, R, R) are symmetric, P = Lambda^-1/2 (A + I) Lambda^-1/2 of each subject.
        """
        hidden, edges = windows[:, None], self.edges(adjacency)
        for block in self.blocks:
            hidden = block(hidden, edges)
        logits: Tensor = self.readout(hidden.mean(dim=(2, 3)))
        return logits


class Block(nn.Module):
    """relu(GroupNorm(temporal(spatial(f)))), plus f before the ReLU where channels and time points stay as they are.

    Spatial is eq. 5, P f_t W_SG at every time t, and temporal a convolution over time with zeros around the window.
    Without a nonlinearity between them they are one convolution over a node's neighbourhood in space and time, as
    eq. 4 has it. So the product with P, which takes most of the operations, may stand before the kernels or after
    them; it stands where there are fewer columns (channels x time points).
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, groups: int) -> None:
        super().__init__()
        self.inputs, self.outputs, self.stride = inputs, outputs, stride
        self.kernels = Kernels(inputs, outputs, kernel, stride)
        self.norm = nn.GroupNorm(groups, outputs)

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """(B, outputs, ceil(T / stride), R) from features (B, inputs, T, R) and P (B, R, R)."""
        time = features.shape[2]
        if self.inputs * time <= self.outputs * -(-time // self.stride):
            hidden = self.kernels(propagated(features, adjacency))
        else:
            hidden = propagated(self.kernels(features), adjacency)
        hidden = self.norm(hidden)
        return relu(hidden + features) if self.inputs == self.outputs and self.stride == 1 else relu(hidden)


class Kernels(nn.Module):
    """W_SG of eq. 5, then the temporal kernel, in one convolution."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        if kernel % 2 == 0:
            raise ValueError(f"expected an odd number of time points, found {kernel=}")
        super().__init__()
        self.stride = stride
        self.spatial, self.temporal = parameter(outputs, inputs), parameter(outputs, outputs, kernel)

    def forward(self, features: Tensor) -> Tensor:
        """(B, outputs, ceil(T / stride), R) from (B, inputs, T, R)."""
        return convolved(features, torch.einsum("omk,mi->oik", self.temporal, self.spatial), self.stride)


def propagated(features: Tensor, adjacency: Tensor) -> Tensor:
    """P f_t for every channel and time, features (B, c, T, R), symmetric P (B, R, R)."""
    return torch.bmm(features.flatten(1, 2), adjacency).view(features.shape)


def convolved(features: Tensor, kernel: Tensor, stride: int) -> Tensor:
    """(B, c', ceil(T / stride), R): features (B, c, T, R) convolved over time with a kernel (c', c, k)."""
    outputs, inputs, taps = kernel.shape
    if inputs > 1:
        return conv2d(features, kernel[..., None], stride=(stride, 1), padding=(taps // 2, 0))
    # oneDNN is slow on a single channel.
    padded = pad(features[:, 0], (0, 0, taps // 2, taps // 2))
    last = padded.shape[1] - taps + 1
    shifted = torch.stack([padded[:, tap : tap + last : stride] for tap in range(taps)], dim=1)
    weights = kernel.mT.reshape(1, outputs, taps).expand(len(shifted), -1, -1)
    return torch.bmm(weights, shifted.flatten(2)).view(len(shifted), outputs, *shifted.shape[2:])
