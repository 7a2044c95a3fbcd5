"""The last layer of FedSage+'s fGen and its loss, in blocks of features that stay in the cache.

The layer is slots x d wide, 99,500 numbers a node at d = 19,900, and holds nearly all of the arithmetic. Autograd
would read tensors of that width a dozen times in each visit, and allocate each gradient anew.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import Linear

from brainfed.inpainting.fedsage.losses import nearest_missing

CPU_BLOCK = 512


@dataclass(frozen=True)
class Targets:
    """Targets of the generated features at one owner.

    Attributes:
        missing: (h, d) true features of hidden nodes.
        neighbours: (t, h) bool mask of each node's missing neighbours, at least one in each row.
        visible: number of visible nodes v >= t; those without missing neighbours have a loss of 0.
    """

    missing: Tensor
    neighbours: Tensor
    visible: int


@dataclass
class WideOutput:
    """Forward, loss and backward of the layer; one object serves all owners of a device.

    Attributes:
        block: number of features at a time.
    """

    block: int = CPU_BLOCK
    _made: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    _gradients: tuple[Tensor, ...] = ()

    @torch.no_grad()
    def add_gradients(self, output: Linear, hidden: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        """FedSage+ L^f, and its gradients, added to the layer's.

        L^f = 1/|V| sum_v sum_p min_u |x~_v^p - x_u|^2 over generated vectors p and missing neighbours u of v; here a
        mean over visible nodes, slots and features.

        Args:
            output: the layer, (slots * d, w).
            hidden: (t, w) its inputs.
            targets: of tanh of its output.

        Returns:
            the loss, and its gradient by `hidden` (t, w).
        """
        d = targets.missing.shape[1]
        made = self._generate(output, hidden)
        nearest = self._nearest(made, targets)
        weight_gradient, bias_gradient = self._buffers(output)
        back, squared = torch.zeros_like(hidden), hidden.new_zeros(())
        entries = targets.visible * len(output.bias)
        for slot in range(len(output.bias) // d):
            for block in self._blocks(d):
                columns = slice(slot * d + block.start, slot * d + block.stop)
                vectors = made[:, columns]
                error = vectors - targets.missing[:, block].index_select(0, nearest[:, slot])
                squared += torch.linalg.vector_norm(error) ** 2
                error.mul_(2 / entries)
                error.addcmul_(error, vectors.square(), value=-1)
                weight_gradient[columns].addmm_(error.T, hidden)
                bias_gradient[columns].add_(error.sum(dim=0))
                back.addmm_(error, output.weight[columns])
        return squared / entries, back

    def _generate(self, output: Linear, hidden: Tensor) -> Tensor:
        """(t, slots * d) features in (-1, 1), which the next call overwrites."""
        kept, width = self._made, len(output.bias)
        if (kept.shape[1], kept.dtype, kept.device) != (width, hidden.dtype, hidden.device) or len(kept) < len(hidden):
            self._made = hidden.new_empty(len(hidden), width)
        made = self._made[: len(hidden)]
        for block in self._blocks(width):
            torch.mm(hidden, output.weight[block].T, out=made[:, block])
            made[:, block].add_(output.bias[block]).tanh_()
        return made

    def _nearest(self, made: Tensor, targets: Targets) -> Tensor:
        """(t, slots) rows of `missing`."""
        d = targets.missing.shape[1]
        vectors = made.view(len(made), made.shape[1] // d, d)
        products = made.new_empty(len(made), vectors.shape[1], len(targets.missing))
        for slot in range(vectors.shape[1]):
            products[:, slot] = vectors[:, slot] @ targets.missing.T
        return nearest_missing(products, targets.missing.square().sum(dim=1), targets.neighbours)

    def _buffers(self, output: Linear) -> tuple[Tensor, Tensor]:
        """The gradients of weight and bias; `zero_grad` keeps their memory."""
        if output.weight.grad is None or output.bias.grad is None:
            if not self._gradients:
                self._gradients = torch.empty_like(output.weight), torch.empty_like(output.bias)
            output.weight.grad, output.bias.grad = (gradient.zero_() for gradient in self._gradients)
        return output.weight.grad, output.bias.grad

    def _blocks(self, width: int) -> Iterator[slice]:
        for start in range(0, width, self.block):
            yield slice(start, min(start + self.block, width))
