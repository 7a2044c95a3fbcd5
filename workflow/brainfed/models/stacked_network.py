"""FedNI's classifier, stacked over institutions and folds; without a graph it is the MLP.

G-conv(d, 64) ELU -> G-conv(64, 32) -> FC(32, 2), where G-conv(X) = D^-1/2 A D^-1/2 X W + b. With a
skip connection the logits of a linear classifier on the subject's own features, X W_skip, are added.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, elu

from brainfed.models.dropout import Dropout
from brainfed.models.first_layer import Design, FirstLayer
from brainfed.models.propagation import Propagation
from brainfed.runtime.precision import Precision
from brainfed.runtime.streams import Streams

CLASSES = 2


def class_probabilities(logits: Tensor) -> Tensor:
    """Softmax of logits (..., C) in float64; of two classes the first is the rest of the second."""
    found = torch.softmax(logits, dim=-1).double()
    return torch.stack([1 - found[..., 1], found[..., 1]], dim=-1) if found.shape[-1] == 2 else found


FirstProducts = tuple[Tensor, Tensor | None]
"""What the first layer makes of the features, (M, F, n, h), and the skip connection, (M, F, n, 2)."""


@dataclass(frozen=True)
class Architecture:
    """Widths of the hidden layers (logistic regression has none), and whether a skip connection passes the graph."""

    features: int
    hidden: tuple[int, ...]
    graph: bool
    skip: bool = False

    @property
    def widths(self) -> tuple[int, ...]:
        """d, hidden widths, classes."""
        return (self.features, *self.hidden, CLASSES)

    def propagates(self, layer: int) -> bool:
        """All hidden layers are graph convolutions, the last layer is a plain linear one."""
        return self.graph and layer < len(self.hidden)

    @property
    def parameters(self) -> int:
        """Number of learnable numbers of one model."""
        return sum(a * b + b for a, b in pairwise(self.widths)) + self.skip * self.features * CLASSES


def initial_weight(streams: Streams, layer: int, fold: int, rows: int, columns: int) -> Tensor:
    """Glorot's uniform start (rows, columns), the same for every institution; biases start at zero."""
    generator = torch.Generator().manual_seed(streams.key("initial-weights", fold, layer, rows, columns))
    bound = (6.0 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns, dtype=torch.float32).uniform_(-bound, bound, generator=generator)


class StackedNetwork:
    """FedNI Table IV: M institutions x F folds of one architecture, trained side by side.

    Args:
        architecture: the layers.
        designs: one an institution, what its first layer multiplies.
        propagation: (M, 1 or F, n, n) normalised adjacency, zero-padded; None without a graph.
        folds: the numbers of the folds that are stacked, which key the initial weights.
        streams: of the repeat.
        own: the same subjects without propagation, one an institution: what the skip connection multiplies.
            Its weights start at zero, so that training starts from the plain classifier.
        precision: of the products with the features.
        dropout: of what enters the hidden layers and the last one while it trains; None: nothing is dropped.
    """

    def __init__(
        self,
        architecture: Architecture,
        designs: tuple[Design, ...],
        propagation: Propagation | None,
        folds: Sequence[int],
        streams: Streams,
        device: torch.device,
        dtype: torch.dtype,
        own: tuple[Design, ...] = (),
        precision: Precision = "float32",
        dropout: Dropout | None = None,
    ) -> None:
        self.architecture = architecture
        self.dropout = dropout
        self.step: tuple[int, int, int] = (0, 0, 0)
        self.designs = designs
        self.own = own
        self.precision: Precision = precision
        self.propagation = propagation
        self.nodes = max(design.nodes for design in designs)
        institutions = len(designs)
        starts = [
            torch.stack([initial_weight(streams, layer, fold, rows, columns) for fold in folds]).to(device, dtype)
            for layer, (rows, columns) in enumerate(pairwise(architecture.widths))
        ]
        self.first = FirstLayer(starts[0], institutions, precision)
        nothing = torch.zeros(len(folds), architecture.features, CLASSES, device=device, dtype=dtype)
        self.skip = FirstLayer(nothing, institutions, precision) if architecture.skip else None
        self.weights = [torch.nn.Parameter(start.repeat(institutions, 1, 1, 1)) for start in starts[1:]]
        self.biases = [
            torch.nn.Parameter(torch.zeros(institutions, len(folds), 1, width, device=device, dtype=dtype))
            for width in architecture.widths[1:]
        ]
        self._scored: FirstProducts | None = None

    def parameters(self) -> list[torch.nn.Parameter]:
        """All learnable tensors, the first layer's weights first."""
        skip = [] if self.skip is None else [self.skip.weight]
        return [self.first.weight, *self.weights, *self.biases, *skip]

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of all learnable tensors by name, without gradient."""
        views = {"weight-0": self.first.stack()}
        views |= {f"weight-{layer}": weight.detach() for layer, weight in enumerate(self.weights, start=1)}
        views |= {f"bias-{layer}": bias.detach()[:, :, 0] for layer, bias in enumerate(self.biases)}
        return views if self.skip is None else views | {"weight-skip": self.skip.stack()}

    def draw_anew(self, round_index: int, epoch: int, step: int) -> None:
        """Key the dropout of the next step."""
        self.step = (round_index, epoch, step)

    def logits(self, hidden: Tensor, past: Tensor | None, dropped: Sequence[Tensor] = ()) -> Tensor:
        """(M, F, n, 2) from the first layer's product (M, F, n, h) without its bias, and the skip connection's.

        What enters each of the later layers is multiplied by one of `dropped` (M, F, n, width); none while scoring.
        """
        activation = hidden + self.biases[0]
        for layer, weight in enumerate(self.weights, start=1):
            if layer == 1:
                activation = elu(activation)
            if dropped:
                activation = activation * dropped[layer - 1]
            activation = activation @ weight
            if self.propagation is not None and self.architecture.propagates(layer):
                activation = self.propagation @ activation
            activation = activation + self.biases[layer]
        return activation if past is None else activation + past

    def training_step(self, labels: Tensor, chosen: Tensor) -> Tensor:
        """Fill every gradient from the mean cross-entropy over labelled nodes.

        FedNI eq. 13: L_ce = -sum over i in Y_L of (y_i log p_i + (1 - y_i) log(1 - p_i)); here a mean.

        Args:
            labels: (M, F, n) in {0, 1}, -1 where a node does not count.
            chosen: (M,) bool on the host, the institutions that train.

        Returns:
            (M, F) losses; NaN where an institution has no labelled node or does not train.
        """
        hidden, past = self._products(chosen) if self._scored is None else self._scored
        self._scored = None
        for product in (hidden,) if past is None else (hidden, past):
            product.requires_grad_()
        counted = labels >= 0
        entropy = cross_entropy(
            self.logits(hidden, past, self._dropped(chosen)).reshape(-1, CLASSES),
            labels.clamp(min=0).reshape(-1),
            reduction="none",
        ).view(labels.shape)
        losses = (entropy * counted).sum(dim=2) / counted.sum(dim=2).clamp(min=1)
        trains = chosen.to(losses.device, non_blocking=True)[:, None] & counted.any(dim=2)
        for parameter in (*self.weights, *self.biases):
            parameter.grad = None
        (losses * trains).sum().backward()  # type: ignore[no-untyped-call]
        assert hidden.grad is not None
        self.first.backward(self.designs, hidden.grad, chosen)
        if self.skip is not None:
            assert past is not None and past.grad is not None
            self.skip.backward(self.own, past.grad, chosen)
        return losses.detach().masked_fill(~trains, float("nan"))

    @torch.no_grad()
    def probabilities(self) -> Tensor:
        """(M, F, n, C) of every class, every institution by its own weights; float64.

        The next training step starts from these products unless `load` comes between.
        """
        self._scored = self._products()
        return class_probabilities(self.logits(*self._scored))

    @torch.no_grad()
    def load(self, values: dict[str, Tensor]) -> None:
        """Take tensors (F, ...), the same for every institution, or (M, F, ...)."""
        self._scored = None
        for name, view in self.stacks().items():
            view.copy_(values[name])

    def _dropped(self, chosen: Tensor) -> tuple[Tensor, ...]:
        """Dropout's factors of the next step, one for each layer but the first; none without dropout."""
        if self.dropout is None:
            return ()
        nodes = [design.nodes for design in self.designs]
        return self.dropout.factors(nodes, self.architecture.hidden, chosen, self.step, self.biases[0])

    def _products(self, chosen: Tensor | None = None) -> FirstProducts:
        past = None if self.skip is None else self.skip.forward(self.own, self.nodes, chosen)
        return self.first.forward(self.designs, self.nodes, chosen), past
