"""What reads the imaging features in a stack: products along the graphs' edges, and one product for all folds.

With d = 19,900 connections the first layer is nearly all of the arithmetic. Its weights lie as
(institutions, d, folds, hidden), so that the folds stand side by side and institution m costs one
product (n_m, d) x (d, folds * hidden). Standardisation by fold is folded into the weights:

    ((x - mean_f) / sd_f) W_f = x (W_f / sd_f) - mean_f (W_f / sd_f)

The rows mean_f ride along as extra rows of x. Gradients are written straight into `weight.grad`,
which is allocated once: fresh pages for 127 MB in every epoch would cost more than the arithmetic.

A dense propagation (institutions, 1 or folds, n, n) is multiplied in full; above `DENSE_NUMBERS` only the edges are
stored, as one block-diagonal sparse matrix over the nodes of all institutions.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from brainfed.graphs import Graph
from brainfed.models import Products
from brainfed.runtime import Float64, IntArray, Precision

BlockEdges = tuple[IntArray, IntArray, Float64]
"""Row, column and value of the edges inside one institution."""

DENSE_NUMBERS = 1 << 24
"""Largest number of entries of a dense propagation."""

Propagate = Callable[[Graph], BlockEdges]
"""Maps a graph to row, column and value of the network's propagation matrix."""


@dataclass(frozen=True)
class SparsePropagation:
    """Sparse substitute for a dense (M, G, n, n) tensor: `propagation @ activation` gives the same values.

    Attributes:
        matrix: (M G n, M G n) in CSR format.
        transposed: its transpose, for the gradients.
        shape: M, G, n.
    """

    matrix: Tensor
    transposed: Tensor
    shape: tuple[int, int, int]

    @classmethod
    def of_edges(cls, blocks: Sequence[Sequence[BlockEdges]], nodes: int, dtype: torch.dtype) -> "SparsePropagation":
        """From the edges of graph g of institution m, `blocks[m][g]`, each with at most `nodes` nodes."""
        graphs = len(blocks[0])
        flat = [block for institution in blocks for block in institution]
        row = np.concatenate([block[0] + index * nodes for index, block in enumerate(flat)])
        column = np.concatenate([block[1] + index * nodes for index, block in enumerate(flat)])
        value = np.concatenate([block[2] for block in flat])
        size = len(flat) * nodes
        return cls(
            _compressed(row, column, value, size, dtype),
            _compressed(column, row, value, size, dtype),
            (len(blocks), graphs, nodes),
        )

    def to(self, device: torch.device) -> "SparsePropagation":
        """The same on `device`."""
        return replace(self, matrix=self.matrix.to(device), transposed=self.transposed.to(device))

    def __matmul__(self, activation: Tensor) -> Tensor:
        """Activation (M, F, n, h) -> (M, F, n, h); G is 1 or F."""
        institutions, graphs, nodes = self.shape
        folds, width = activation.shape[1], activation.shape[3]
        if graphs == folds:
            flat = activation.reshape(institutions * folds * nodes, width)
            return self._product(flat).view(institutions, folds, nodes, width)
        flat = activation.permute(0, 2, 1, 3).reshape(institutions * nodes, folds * width)
        return self._product(flat).view(institutions, nodes, folds, width).permute(0, 2, 1, 3)

    def _product(self, flat: Tensor) -> Tensor:
        product: Tensor = _Product.apply(flat, self.matrix, self.transposed)  # type: ignore[no-untyped-call]
        return product

    def blocks(self, institution: int, nodes: int) -> tuple[Tensor, ...]:
        """The G sparse (nodes, nodes) matrices of one institution."""
        _, graphs, width = self.shape
        pointers, columns, values = self.matrix.crow_indices(), self.matrix.col_indices(), self.matrix.values()
        matrices = []
        for start in ((institution * graphs + graph) * width for graph in range(graphs)):
            own = pointers[start : start + nodes + 1]
            first, last = int(own[0]), int(own[-1])
            matrices.append(
                compressed_rows(own - first, columns[first:last] - start, values[first:last], (nodes, nodes))
            )
        return tuple(matrices)


Propagation = Tensor | SparsePropagation


def institution_blocks(propagation: Propagation, institution: int, nodes: int) -> Tensor | tuple[Tensor, ...]:
    """The G matrices (nodes, nodes) of one institution, dense or sparse."""
    if isinstance(propagation, SparsePropagation):
        return propagation.blocks(institution, nodes)
    return propagation[institution, :, :nodes, :nodes]


def row_sums(matrix: Tensor) -> Tensor:
    """(n,) sums of the rows of a dense or sparse (n, n) matrix."""
    if matrix.layout == torch.strided:
        return matrix.sum(dim=1)
    return matrix @ matrix.values().new_ones(matrix.shape[1])


class _Product(torch.autograd.Function):
    """A sparse matrix times a dense one; the gradient uses the stored transpose."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: Tensor, transposed: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ dense

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return ctx.transposed @ gradients[0].contiguous(), None, None


def _compressed(row: IntArray, column: IntArray, value: Float64, size: int, dtype: torch.dtype) -> Tensor:
    order = np.lexsort((column, row))
    pointers = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))])
    values = torch.from_numpy(value[order]).to(dtype)
    return compressed_rows(torch.from_numpy(pointers), torch.from_numpy(column[order]), values, (size, size))


def compressed_rows(pointers: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """A sparse CSR matrix of torch."""
    with warnings.catch_warnings():
        # torch warns once that its CSR format is in beta.
        warnings.simplefilter("ignore", UserWarning)
        return torch.sparse_csr_tensor(pointers, columns, values, shape)


@dataclass(frozen=True)
class SharedDesign:
    """Input of the layer for one institution, if all folds share its features and its graph.

    Attributes:
        rows: (n + F, d) propagated features A X (or X), then the F training means.
        row_sums: (n,) sums of the rows of A, the propagation of a constant; ones without a graph.
        inverse_sd: (d, F, 1) reciprocals of the training standard deviations.
    """

    rows: Tensor
    row_sums: Tensor
    inverse_sd: Tensor

    @property
    def nodes(self) -> int:
        """Number of subjects n."""
        return int(self.row_sums.shape[0])


@dataclass(frozen=True)
class FoldDesign:
    """Input of the layer for one institution, if every fold has features or a graph of its own.

    Attributes:
        rows: (F, n, d) standardised and propagated features.
    """

    rows: Tensor

    @property
    def nodes(self) -> int:
        """Number of subjects n."""
        return int(self.rows.shape[1])


Design = SharedDesign | FoldDesign


class FirstLayer:
    """Weights (M, d, F, h) of the first layer of M institutions and F folds."""

    def __init__(self, initial: Tensor, institutions: int, precision: Precision = "float32") -> None:
        """All institutions start from `initial` (F, d, h)."""
        weight = initial.permute(1, 0, 2).unsqueeze(0).repeat(institutions, 1, 1, 1).contiguous()
        self.weight = torch.nn.Parameter(weight)
        self.weight.grad = torch.zeros_like(weight)
        self._products = Products(precision)
        self._scaled = torch.empty_like(weight[0])

    def stack(self) -> Tensor:
        """A view (M, F, d, h) of the weights."""
        return self.weight.detach().permute(0, 2, 1, 3)

    @torch.no_grad()
    def forward(self, designs: tuple[Design, ...], nodes: int, chosen: Tensor | None = None) -> Tensor:
        """(M, F, nodes, h): each institution's rows times its own weights; zero in padding and if not chosen."""
        institutions, _, folds, hidden = self.weight.shape
        output = self.weight.new_zeros(institutions, folds, nodes, hidden)
        for institution, design in enumerate(designs):
            if chosen is None or chosen[institution]:
                self.apply(institution, design, output[institution])
        return output

    @torch.no_grad()
    def apply(self, institution: int, design: Design, output: Tensor) -> None:
        """Write the rows of `design` times the weights of `institution` into output (F, >= n, h)."""
        weight = self.weight[institution]
        d, folds, hidden = weight.shape
        n = design.nodes
        if isinstance(design, FoldDesign):
            for fold in range(folds):
                self._products.write(design.rows[fold], weight[:, fold], output[fold, :n])
            return
        torch.mul(weight, design.inverse_sd, out=self._scaled)
        product = weight.new_empty(n + folds, folds * hidden)
        self._products.write(design.rows, self._scaled.view(d, folds * hidden), product)
        subjects, means = product.view(n + folds, folds, hidden).tensor_split((n,))
        mean_of_own_fold = means.diagonal().T
        output[:, :n] = (subjects - design.row_sums[:, None, None] * mean_of_own_fold).transpose(0, 1)

    @torch.no_grad()
    def backward(self, designs: tuple[Design, ...], gradient: Tensor, chosen: Tensor) -> None:
        """Fill `weight.grad` from the gradient (M, F, nodes, h) of the output; zero where not chosen."""
        assert self.weight.grad is not None
        d, folds, hidden = self.weight.shape[1:]
        for institution, design in enumerate(designs):
            target = self.weight.grad[institution]
            if not chosen[institution]:
                target.zero_()
                continue
            n = design.nodes
            upstream = gradient[institution, :, :n]
            if isinstance(design, FoldDesign):
                for fold in range(folds):
                    self._products.write(design.rows[fold].T, upstream[fold], target[:, fold])
                continue
            columns = upstream.new_zeros(n + folds, folds, hidden)
            columns[:n] = upstream.transpose(0, 1)
            columns[n:].diagonal().copy_(-(design.row_sums @ upstream).T)
            flat = target.view(d, folds * hidden)
            self._products.write(design.rows.T, columns.view(n + folds, folds * hidden), flat)
            target.mul_(design.inverse_sd)
