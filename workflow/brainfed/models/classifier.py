"""Base class of the classifiers of subjects: the products with the features come first, all other layers follow.

With 19,900 connections a subject, nearly all of the arithmetic is in these products. A classifier names the weights
that form them (`reads`) and defines the other layers (`logits`). `forward` is the plain network of one institution. An
engine that forms the products of many institutions faster calls the same `logits` on tensors with more leading axes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from brainfed.runtime.streams import Streams

Read = Literal["own", "propagated"]
"""A product with the features X of the subjects, X W, or with the propagated features, A X W."""


class Matrix(Protocol):
    """A (..., n, n), dense or sparse."""

    def __matmul__(self, activation: Tensor, /) -> Tensor:
        """A @ activation (..., n, width)."""


Products = Mapping[str, Tensor]
"""Name of a weight -> its product with the features, (..., n, width)."""


class Classifier(torch.nn.Module, ABC):
    """A network from features (n, d) to logits (n, C).

    Args:
        widths: d, the widths of the hidden layers, C.
        reads: the weights (d, width) that multiply the features -> their factor.
        zero: weights that start at zero, so that training starts from the network without them.
    """

    def __init__(self, widths: tuple[int, ...], reads: Mapping[str, Read], zero: Sequence[str] = ()) -> None:
        super().__init__()
        self.widths, self.reads, self.zero = widths, dict(reads), tuple(zero)

    @abstractmethod
    def logits(self, products: Products, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C) from the products with the features.

        Args:
            products: of the weights in `reads`.
            propagation: A (..., n, n); None without a graph.
            kept: dropout factors (..., n, width) for the input of each layer after the first; empty in scoring.
        """

    def forward(self, x: Tensor, propagation: Matrix | None = None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(n, C) from features x (n, d) on a graph (n, n)."""
        neighbours = x if propagation is None else propagation @ x
        read = {"own": x, "propagated": neighbours}
        products = {name: read[what] @ self.get_parameter(name) for name, what in self.reads.items()}
        return self.logits(products, propagation, kept)

    @torch.no_grad()
    def start(self, streams: Streams, fold: int) -> None:
        """Set the initial weights of all institutions in `fold`; biases start at zero."""
        drawn = [weight for name, weight in self.named_parameters() if weight.dim() == 2 and name not in self.zero]
        for parameter in self.parameters():
            parameter.zero_()
        for layer, weight in enumerate(drawn):
            weight.copy_(initial_weight(streams, layer, fold, *weight.shape))


def matrix(rows: int, columns: int) -> torch.nn.Parameter:
    """An uninitialised weight (rows, columns)."""
    return torch.nn.Parameter(torch.zeros(rows, columns))


def vector(width: int) -> torch.nn.Parameter:
    """A bias (width,)."""
    return torch.nn.Parameter(torch.zeros(width))


def dropped(activation: Tensor, kept: Sequence[Tensor], layer: int) -> Tensor:
    """The input of layer `layer` + 1 after dropout."""
    return activation * kept[layer] if kept else activation


def initial_weight(streams: Streams, layer: int, fold: int, rows: int, columns: int) -> Tensor:
    """Glorot's uniform start (rows, columns), the same for every institution."""
    generator = torch.Generator().manual_seed(streams.key("initial-weights", fold, layer, rows, columns))
    bound = (6.0 / (rows + columns)) ** 0.5
    return torch.empty(rows, columns, dtype=torch.float32).uniform_(-bound, bound, generator=generator)


def class_probabilities(logits: Tensor) -> Tensor:
    """Softmax of logits (..., C) in float64; for two classes the first is 1 minus the second."""
    found = torch.softmax(logits, dim=-1).double()
    return torch.stack([1 - found[..., 1], found[..., 1]], dim=-1) if found.shape[-1] == 2 else found
