"""The graph network without temporal convolution that FGLBC is compared with (FedGNN; Chen and Su 2024, Table 1)."""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from brainfed.models.region_graph import EdgeImportance, normalisation, start
from brainfed.runtime.streams import Streams


class RegionGNN(nn.Module):
    """Graph convolutions -> mean over regions -> FC(hidden, C); a region's features are its window of T values.

    A layer is relu(GroupNorm(P H W)). As in `models.st_gcn`, all layers see one subject at a time.

    Args:
        regions: R.
        window: T.
        classes: C.
        hidden: channels of every layer.
        layers: number of graph convolutions.
        groups: of channels that are normalised together.
        edge_importance: whether the weights of edges are learnt (`EdgeImportance`).
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
        super().__init__()
        self.importance = EdgeImportance(regions) if edge_importance else None
        widths = [window] + [hidden] * layers
        self.convolutions = nn.ModuleList(GraphConvolution(*width, groups) for width in pairwise(widths))
        self.readout = nn.Linear(hidden, classes)

    def forward(self, windows: Tensor, adjacency: Tensor) -> Tensor:
        """Logits (B, C) from windows (B, T, R) and symmetric normalised adjacencies (B, R, R) of B subjects."""
        if self.importance is not None:
            adjacency = self.importance(adjacency)
        hidden = windows
        for convolution in self.convolutions:
            hidden = convolution(hidden, adjacency)
        logits: Tensor = self.readout(hidden.mean(dim=2))
        return logits

    def start(self, streams: Streams, fold: int, place: int = 0) -> None:  # noqa: ARG002
        """Set the initial weights, the same for every institution of a fold."""
        start(self, streams, fold)


class GraphConvolution(nn.Module):
    """relu(GroupNorm(P H W)), multiplied by P where there are fewer channels."""

    def __init__(self, inputs: int, outputs: int, groups: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.channels = nn.Conv1d(inputs, outputs, 1, bias=False)
        self.norm = normalisation(outputs, groups)

    def forward(self, features: Tensor, adjacency: Tensor) -> Tensor:
        """(B, outputs, R) from features (B, inputs, R) and P (B, R, R)."""
        if self.inputs <= self.outputs:
            return relu(self.norm(self.channels(torch.bmm(features, adjacency))))
        return relu(self.norm(torch.bmm(self.channels(features), adjacency)))
