"""The layer that reads the imaging features: one matrix product for all folds of an institution.

With d = 19,900 connections this layer is nearly all of the arithmetic. Its weights lie as
(institutions, d, folds, hidden), so that the folds stand side by side and institution m costs one
product (n_m, d) x (d, folds * hidden). Standardisation by fold is folded into the weights:

    ((x - mean_f) / sd_f) W_f = x (W_f / sd_f) - mean_f (W_f / sd_f)

The rows mean_f ride along as extra rows of x. Gradients are written straight into `weight.grad`,
which is allocated once: fresh pages for 127 MB in every epoch would cost more than the arithmetic.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.models.products import Products
from brainfed.runtime.precision import Precision


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
