"""FedSage+'s classifier, GraphSAGE with mean aggregation (Hamilton et al. 2017), stacked as FedNI's Table IV is.

    h_1 = elu(M X W_0 + X V_0 + b_0),   h_2 = M h_1 W_1 + h_1 V_1 + b_1,   logits = h_2 W_2 + b_2

M averages over a node's neighbours, itself not among them. X V_0 is what a skip connection of the stacked
network is, only that it ends in the first layer.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import elu

from brainfed.models.dropout import Dropout
from brainfed.models.first_layer import Design, FirstLayer, FoldDesign
from brainfed.models.propagation import Propagation, institution_blocks, row_sums
from brainfed.models.stacked_network import Architecture, StackedNetwork, initial_weight
from brainfed.runtime.precision import Precision
from brainfed.runtime.streams import Streams

LAYERS = 3


class SageNetwork(StackedNetwork):
    """M institutions x F folds, trained side by side.

    Args:
        features: d.
        hidden: widths of the two GraphSAGE layers.
        own: one design an institution, without propagation.
        means: (M, 1 or F, n, n) rows of 1 / degree, zero-padded; one a fold where the designs are `FoldDesign`s.
        folds: the numbers of the folds that are stacked, which key the initial weights.
        streams: of the repeat.
        precision: of the products with the features.
        dropout: of what enters the second layer and the last one while it trains; None: nothing is dropped.
    """

    def __init__(
        self,
        features: int,
        hidden: tuple[int, int],
        own: tuple[Design, ...],
        means: Propagation,
        folds: Sequence[int],
        streams: Streams,
        device: torch.device,
        dtype: torch.dtype,
        precision: Precision = "float32",
        dropout: Dropout | None = None,
    ) -> None:
        architecture = Architecture(features, hidden, graph=True)
        averaged = tuple(
            averaged_design(design, institution_blocks(means, index, design.nodes)) for index, design in enumerate(own)
        )
        super().__init__(architecture, averaged, means, folds, streams, device, dtype, own, precision, dropout)
        first, second = (
            torch.stack([own_weight(streams, layer, fold, *architecture.widths[layer : layer + 2]) for fold in folds])
            for layer in range(2)
        )
        self.skip = FirstLayer(first.to(device, dtype), len(own), precision)
        self.weights.append(torch.nn.Parameter(second.to(device, dtype).repeat(len(own), 1, 1, 1)))

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of all learnable tensors by name, without gradient."""
        views = super().stacks()
        own = {"weight-own-0": views.pop("weight-skip"), "weight-own-1": views.pop(f"weight-{LAYERS}")}
        return views | own

    def logits(self, hidden: Tensor, past: Tensor | None, dropped: Sequence[Tensor] = ()) -> Tensor:
        """(M, F, n, 2) from the first layer's products (M, F, n, h): over neighbours, and of the nodes themselves.

        What enters the second layer and the last one is multiplied by `dropped` (M, F, n, width); none while scoring.
        """
        assert past is not None and self.propagation is not None
        second, last, own = self.weights
        first = elu(hidden + past + self.biases[0])
        first = first * dropped[0] if dropped else first
        hidden = self.propagation @ (first @ second) + first @ own + self.biases[1]
        return (hidden * dropped[1] if dropped else hidden) @ last + self.biases[2]


def own_weight(streams: Streams, layer: int, fold: int, rows: int, columns: int) -> Tensor:
    """Glorot's start (rows, columns) of V_layer, drawn as if it were a further layer of the network."""
    return initial_weight(streams, LAYERS + layer, fold, rows, columns)


def averaged_design(design: Design, means: Tensor | tuple[Tensor, ...]) -> Design:
    """The same institution's design after averaging over neighbours: means (1 or F, n, n)."""
    if isinstance(design, FoldDesign):
        if isinstance(means, Tensor):
            return FoldDesign(means @ design.rows)
        every = means * len(design.rows) if len(means) == 1 else means
        return FoldDesign(torch.stack([mean @ rows for mean, rows in zip(every, design.rows, strict=True)]))
    if len(means) > 1:
        raise ValueError("one design for all folds, but a graph for each")
    nodes, training_means = design.rows[: design.nodes], design.rows[design.nodes :]
    return replace(design, rows=torch.cat([means[0] @ nodes, training_means]), row_sums=row_sums(means[0]))
