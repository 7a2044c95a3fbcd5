"""Dropout of a stacked classifier's hidden activations, drawn on the CPU from keyed streams (Srivastava et al. 2014).

Parisot et al. (2018) drop 30 % of the inputs of every layer. Here the products A X are formed once for all steps, so
the features are not dropped. Dropout acts on the inputs of the second convolution and of the last layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.runtime.streams import Streams


@dataclass(frozen=True)
class Dropout:
    """Dropout of hidden activations.

    Attributes:
        rate: share of the activations that a step sets to zero; the others are divided by 1 - rate.
        folds: numbers of the stacked folds.
        streams: random streams of the repeat.
        local_epochs: epochs in a round. Draws are keyed by the epoch since the start of training.
    """

    rate: float
    folds: tuple[int, ...]
    streams: Streams
    local_epochs: int

    def factors(
        self, nodes: Sequence[int], widths: Sequence[int], chosen: Tensor, step: tuple[int, int, int], like: Tensor
    ) -> tuple[Tensor, ...]:
        """(M, F, n, width) factors for each of `widths`: 0 or 1 / (1 - rate); 0 in padding and if not chosen.

        Args:
            nodes: (M,) number of nodes of each institution.
            widths: widths of the hidden layers.
            chosen: (M,) bool, the institutions that train.
            step: round, epoch in the round, step in the epoch.
            like: tensor of the wanted device and precision.
        """
        round_index, epoch, batch = step
        moment = round_index * self.local_epochs + epoch, batch
        found = [torch.zeros(len(nodes), len(self.folds), max(nodes), width) for width in widths]
        for layer, kept in enumerate(found):
            for institution in torch.nonzero(chosen)[:, 0].tolist():
                for position, fold in enumerate(self.folds):
                    key = self.streams.key("dropout", institution, fold, *moment, layer)
                    drawn = torch.rand(nodes[institution], kept.shape[-1], generator=torch.Generator().manual_seed(key))
                    kept[institution, position, : nodes[institution]] = drawn >= self.rate
        return tuple((kept / (1 - self.rate)).to(like) for kept in found)
