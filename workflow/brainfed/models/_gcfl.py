"""The graph isomorphism network of GCFL (Xie et al. 2021, Sec. 5.1; Xu et al. 2019, eq. 4.1 with eps = 0)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import dropout, relu
from torch_geometric.nn import GINConv, global_add_pool

from brainfed.runtime import Streams, seeded

SHARED = "convs."
"""Start of the names of the parameters that leave an institution, in every method."""


class GIN(torch.nn.Module):
    """FC(d, h) -> layers x [GIN convolution, ReLU, dropout] -> sum over nodes -> FC(h, h) ReLU dropout -> FC(h, C).

    A convolution is MLP(x_i + sum of x_j over the neighbours j of i), with an MLP h-h-h of one ReLU.

    Args:
        features: d.
        classes: C.
        hidden: h.
        dropout: share of the activations that a training step drops.
    """

    def __init__(self, features: int, classes: int, hidden: int = 64, layers: int = 3, dropout: float = 0.5) -> None:
        super().__init__()
        self.features, self.classes, self.hidden, self.layers = features, classes, hidden, layers
        self.dropout = dropout
        self.pre = torch.nn.Linear(features, hidden)
        self.convs = torch.nn.ModuleList(GINConv(_mlp(hidden), eps=0.0, train_eps=False) for _ in range(layers))
        self.post = torch.nn.Linear(hidden, hidden)
        self.readout = torch.nn.Linear(hidden, classes)

    def forward(self, nodes: Tensor, edges: Tensor, graph: Tensor, graphs: int, kept: Sequence[Tensor] = ()) -> Tensor:
        """Logits (n, C) of n graphs with N nodes and E edges in all.

        Nodes (N, d) have features, edges (2, E) a source and a target, and `graph` (N,) is the graph of each node.
        Dropout factors `kept` are (N, h) for each convolution, then (n, h); without any, torch draws them in training.
        """
        hidden = self.pre(nodes)
        for layer, conv in enumerate(self.convs):
            hidden = self._dropped(relu(conv(hidden, edges)), kept, layer)
        pooled = global_add_pool(hidden, graph, size=graphs)
        logits: Tensor = self.readout(self._dropped(relu(self.post(pooled)), kept, self.layers))
        return logits

    def start(self, streams: Streams, fold: int, institution: int) -> None:
        """Draw torch's initial weights from keyed streams.

        In a fold the convolutions of all institutions start alike, and each institution's own layers start apart. From
        common local layers the institutions move alike for so long that GCFL finds nothing to cut.
        """
        for name, layer in self.named_modules():
            if isinstance(layer, torch.nn.Linear):
                whose = () if name.startswith(SHARED) else (institution,)
                with seeded(streams.key("initial-weights", fold, name, *whose)):
                    drawn = torch.nn.Linear(layer.in_features, layer.out_features)
                layer.load_state_dict(drawn.state_dict())

    def _dropped(self, activation: Tensor, kept: Sequence[Tensor], layer: int) -> Tensor:
        return activation * kept[layer] if kept else dropout(activation, self.dropout, self.training)


def _mlp(width: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
