"""The propagation of a stack, (institutions, 1 or folds, n, n), dense or sparse.

A dense stack holds institutions x n x n numbers and is multiplied in full; above `DENSE_NUMBERS` only the edges are
stored, as one block-diagonal sparse matrix over the nodes of all institutions.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.graphs.graph import Graph

DENSE_NUMBERS = 1 << 24

BlockEdges = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Row, column and value inside one institution."""

Propagate = Callable[[Graph], BlockEdges]
"""Maps a graph to row, column and value of the network's propagation matrix."""


class SparsePropagation:
    """Sparse substitute for a dense (M, G, n, n) tensor: `propagation @ activation` gives the same values.

    Attributes:
        matrix: (M G n, M G n) in CSR format.
        transposed: its transpose, for the gradients.
        shape: M, G, n.
    """

    def __init__(self, matrix: Tensor, transposed: Tensor, shape: tuple[int, int, int]) -> None:
        self.matrix = matrix
        self.transposed = transposed
        self.shape = shape

    @classmethod
    def of_edges(cls, blocks: Sequence[Sequence[BlockEdges]], nodes: int, dtype: torch.dtype) -> "SparsePropagation":
        """From the edges of graph g of institution m, `blocks[m][g]`, each with at most `nodes` nodes."""
        graphs = len(blocks[0])
        starts = [(m * graphs + g) * nodes for m in range(len(blocks)) for g in range(graphs)]
        flat = [block for institution in blocks for block in institution]
        row = np.concatenate([block[0] + start for block, start in zip(flat, starts, strict=True)])
        column = np.concatenate([block[1] + start for block, start in zip(flat, starts, strict=True)])
        value = np.concatenate([block[2] for block in flat])
        size = len(flat) * nodes
        return cls(
            _compressed(row, column, value, size, dtype),
            _compressed(column, row, value, size, dtype),
            (len(blocks), graphs, nodes),
        )

    def to(self, device: torch.device) -> "SparsePropagation":
        """The same on `device`."""
        return SparsePropagation(self.matrix.to(device), self.transposed.to(device), self.shape)

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
        found = []
        for start in ((institution * graphs + graph) * width for graph in range(graphs)):
            own = pointers[start : start + nodes + 1]
            first, last = int(own[0]), int(own[-1])
            found.append(compressed_rows(own - first, columns[first:last] - start, values[first:last], (nodes, nodes)))
        return tuple(found)


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


def _compressed(
    row: NDArray[np.int64], column: NDArray[np.int64], value: NDArray[np.float64], size: int, dtype: torch.dtype
) -> Tensor:
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
