"""GAHFL's recurrent classifiers of region series (Table II): LSTM, GRU, bidirectional LSTM and the shallower SLSTM.

The recurrent layer reads one time point after the other, its outputs are averaged over time (global average pooling),
and fully connected layers turn the mean into logits. `recurrent_folds` computes the same for the networks of many folds
at once.
"""

from itertools import pairwise
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from brainfed.runtime.streams import Streams

Kind = Literal["lstm", "gru", "bilstm", "slstm"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class RecurrentClassifier(nn.Module):
    """Recurrent layer -> mean over time -> dropout -> FC 10 -> FC 20 -> FC 10 -> FC(C), ReLU between the FC.

    `slstm` has FC 10 -> FC 20 -> FC(C) behind its LSTM. The paper's softmax is not part of the network.

    Args:
        kind: of the recurrent layer.
        regions: R.
        classes: C.
        hidden: width of the recurrent layer, in each direction.
    """

    def __init__(self, kind: Kind, regions: int, classes: int = 2, hidden: int = 32) -> None:
        super().__init__()
        self.pooled = pooled_width(kind, hidden)
        layer = nn.GRU if kind == "gru" else nn.LSTM
        self.recurrent = layer(regions, hidden, batch_first=True, bidirectional=kind == "bilstm")
        widths = [self.pooled, *((10, 20) if kind == "slstm" else (10, 20, 10)), classes]
        self.connected = nn.ModuleList(nn.Linear(*width) for width in pairwise(widths))

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (B, C).

        Args:
            x: (B, T, R) region series.
            keep: (B, `pooled`) dropout factors of the mean, 0 or 1 / share kept; None in scoring.
        """
        outputs, _ = self.recurrent(x)
        found: Tensor = outputs.mean(dim=1)
        if keep is not None:
            found = found * keep
        for number, layer in enumerate(self.connected):
            found = layer(torch.relu(found) if number else found)
        return found

    @torch.no_grad()
    def start(self, streams: Streams, *parts: int | str) -> None:
        """Set the initial weights: torch's distribution, uniform in +- 1 / sqrt(hidden) and in +- 1 / sqrt(inputs).

        Args:
            streams: of the repeat.
            parts: of the key, such as the fold; equal parts give equal weights.
        """
        weights = dict(self.named_parameters())
        for name, weight in weights.items():
            layer = name.rpartition(".")[0]
            inputs = self.recurrent.hidden_size if layer == "recurrent" else weights[f"{layer}.weight"].shape[1]
            bound = inputs**-0.5
            generator = torch.Generator().manual_seed(streams.key("initial-weights", *parts, name, *weight.shape))
            weight.copy_(torch.empty(weight.shape, dtype=torch.float32).uniform_(-bound, bound, generator=generator))


def pooled_width(kind: Kind, hidden: int = 32) -> int:
    """Width of the mean over time."""
    return 2 * hidden if kind == "bilstm" else hidden
