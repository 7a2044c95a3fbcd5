"""Large matrix products in a number format of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from brainfed.runtime.precision import Precision


@dataclass
class Products:
    """Number format of the large products, and the operations that they took so far.

    Attributes:
        precision: `bfloat16`: factors and products; sums have the tensors' own format. `tf32`: factors on a GPU.
            `float32`: the tensors' own format.
        operations: multiplications and additions.
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
