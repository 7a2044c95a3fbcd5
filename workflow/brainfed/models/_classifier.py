"""The base of all classifiers of subjects, its products with the features, and logistic regression."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from brainfed.runtime import Precision, Streams, UserError

# Large matrix products in a number format of their own.

Read = Literal["own", "propagated"]
"""A product with the features X of the subjects, X W, or with the propagated features, A X W."""


@dataclass
class Products:
    """Number format of the large products, and the operations that they took so far.

    Attributes:
        precision: `bfloat16`: factors and products; sums have the tensors' own format. `tf32`: factors on a GPU.
            `float32`: the tensors' own format.
    """

    precision: Precision = "float32"
    operations: int = 0

    def write(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        """Out = left @ right, matrices or batches of them."""
        self._count(left, right)
        if self.precision == "bfloat16":
            out.copy_(left.bfloat16() @ right.bfloat16())
            return
        with self._rounding(out):
            (torch.mm if out.ndim == 2 else torch.bmm)(left, right, out=out)

    def add(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        """Out += left @ right, matrices or batches of them."""
        self._count(left, right)
        if self.precision == "bfloat16":
            out.add_(left.bfloat16() @ right.bfloat16())
            return
        with self._rounding(out):
            (out.addmm_ if out.ndim == 2 else out.baddbmm_)(left, right)

    def write_each(self, left: Tensor, right: Tensor, out: Tensor) -> None:
        """Out = left @ right, a product for each matrix of a batch.

        A GPU's library divides a long sum among processors in a single product, not in a batched one.
        """
        for own in zip(left, right, out, strict=True):
            self.write(*own)

    @contextmanager
    def _rounding(self, out: Tensor) -> Iterator[None]:
        """Set a GPU's rounding of float32 factors, for these products alone."""
        if out.device.type != "cuda":
            yield
            return
        known = torch.backends.cuda.matmul.fp32_precision
        torch.backends.cuda.matmul.fp32_precision = "tf32" if self.precision == "tf32" else "ieee"
        try:
            yield
        finally:
            torch.backends.cuda.matmul.fp32_precision = known

    def _count(self, left: Tensor, right: Tensor) -> None:
        self.operations += 2 * left.numel() * right.shape[-1]


def derivative_of(activation: str) -> Any:
    """ATen's derivative of `sigmoid`, `tanh` or `threshold`, written to `grad_input`; torch does not document it.

    Documented functions take 3 times as long or more, and round that of tanh otherwise.

    Raises:
        UserError: torch has none.
    """
    name = f"{activation}_backward"
    if not hasattr(torch.ops.aten, name):
        version = torch.__version__
        raise UserError(f"torch {version}: expected torch.ops.aten.{name}, found none; requirements.lock names one")
    return getattr(torch.ops.aten, name).grad_input


# Base class of the classifiers of subjects: the products with the features come first, all other layers follow.
#
# With 19,900 connections a subject, nearly all of the arithmetic is in these products. A classifier names the weights
# that form them (`reads`) and defines the other layers (`logits`). `forward` is the plain network of one institution.
# An engine that forms the products of many institutions faster calls the same `logits` on tensors with more leading
# axes.


class Matrix(Protocol):
    """A (..., n, n), dense or sparse."""

    def __matmul__(self, activation: Tensor, /) -> Tensor:
        """A @ activation (..., n, width)."""


NamedProducts = Mapping[str, Tensor]
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
    def logits(self, products: NamedProducts, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:
        """(..., n, C) from the products with the features.

        Propagation is A (..., n, n), None without a graph; `kept` are dropout factors (..., n, width) for the input of
        each layer after the first, none in scoring.
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
            # Glorot's uniform start, the same for every institution.
            bound = (6.0 / sum(weight.shape)) ** 0.5
            weight.copy_(uniform_start(streams, weight.shape, bound, fold, layer, *weight.shape))


def parameter(*shape: int) -> torch.nn.Parameter:
    """A weight or bias before `start`."""
    return torch.nn.Parameter(torch.zeros(shape))


def uniform_start(streams: Streams, shape: Sequence[int], bound: float, *parts: int | str) -> Tensor:
    """Initial weights, uniform in +- `bound`, of the stream with these parts of its key."""
    generator = torch.Generator().manual_seed(streams.key("initial-weights", *parts))
    return torch.empty(tuple(shape), dtype=torch.float32).uniform_(-bound, bound, generator=generator)


def dropped(activation: Tensor, kept: Sequence[Tensor], layer: int) -> Tensor:
    """The input of layer `layer` + 1 after dropout."""
    return activation * kept[layer] if kept else activation


def class_probabilities(logits: Tensor) -> Tensor:
    """Softmax of logits (..., C) in float64; for two classes the first is 1 minus the second."""
    shares = torch.softmax(logits, dim=-1).double()
    return torch.stack([1 - shares[..., 1], shares[..., 1]], dim=-1) if shares.shape[-1] == 2 else shares


# Logistic regression as a network without hidden layers.


class LogisticRegression(Classifier):
    """FC(d, C) of d features and C classes."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__((features, classes), {"weight_0": "own"})
        self.weight_0, self.bias_0 = parameter(features, classes), parameter(classes)

    def logits(self, products: NamedProducts, propagation: Matrix | None, kept: Sequence[Tensor] = ()) -> Tensor:  # noqa: ARG002
        """(..., n, C); see `Classifier`."""
        return products["weight_0"] + self.bias_0
