"""The last layer of FedSage+'s fGen and its loss, in blocks of features that stay in the cache.

The layer is slots x d wide, 99,500 numbers a node at d = 19,900, and holds nearly all of the arithmetic. Autograd
would read tensors of that width a dozen times in each visit, and allocate each gradient anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import Linear

from brainfed.inpainting.fedsage.losses import nearest_missing

CPU_BLOCK = 1024
FEW_NODES = 64
"""For at most this many nodes a block has twice the features."""


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
        block: number of features at a time, for more than `FEW_NODES` nodes.
    """

    block: int = CPU_BLOCK
    _made: Tensor = field(default_factory=lambda: torch.empty(0, 0))
    _gradients: tuple[Tensor, ...] = ()

    @torch.no_grad()
    def add_gradients(self, output: Linear, hidden: Tensor, targets: Sequence[Targets]) -> tuple[Tensor, Tensor]:
        """FedSage+ L^f of some owners, and the gradients of their sum, added to the layer's where it has some.

        L^f = 1/|V| sum_v sum_p min_u |x~_v^p - x_u|^2 over generated vectors p and missing neighbours u of v; here a
        mean over visible nodes, slots and features.

        Args:
            output: the layer, (slots * d, w).
            hidden: (t, w) its inputs at all owners, one owner after the other.
            targets: of tanh of its output, one an owner.

        Returns:
            (owners,) losses, and the gradient of their sum by `hidden` (t, w).
        """
        d = targets[0].missing.shape[1]
        rows = [len(each.neighbours) for each in targets]
        missing = torch.cat([each.missing for each in targets])
        entries = hidden.new_tensor([each.visible * len(output.bias) for each in targets])
        scale = (2 / entries).repeat_interleave(hidden.new_tensor(rows, dtype=torch.int64))[:, None]
        back, squares = torch.zeros_like(hidden), hidden.new_zeros(len(hidden))
        weight_gradient, bias_gradient, are_new = self._buffers(output)
        for slot in range(len(output.bias) // d):
            made = self._generate(output, hidden, slot * d, d)
            nearest = _nearest(made, targets)
            for block in self._blocks(d, len(hidden)):
                columns = slice(slot * d + block.start, slot * d + block.stop)
                vectors = made[:, block]
                error = vectors - missing[:, block].index_select(0, nearest)
                squares += error.square().sum(dim=1)
                error.mul_(scale)
                error.addcmul_(error, vectors.square(), value=-1)
                if are_new:
                    torch.mm(error.T, hidden, out=weight_gradient[columns])
                    torch.sum(error, dim=0, out=bias_gradient[columns])
                else:
                    weight_gradient[columns].addmm_(error.T, hidden)
                    bias_gradient[columns].add_(error.sum(dim=0))
                back.addmm_(error, output.weight[columns])
        return torch.stack([own.sum() for own in torch.split(squares, rows)]) / entries, back

    def _generate(self, output: Linear, hidden: Tensor, start: int, width: int) -> Tensor:
        """(t, width) features in (-1, 1), which the next call overwrites."""
        kept = self._made
        if (kept.shape[1], kept.dtype, kept.device) != (width, hidden.dtype, hidden.device) or len(kept) < len(hidden):
            self._made = hidden.new_empty(len(hidden), width)
        made = self._made[: len(hidden)]
        for block in self._blocks(width, len(hidden)):
            rows = slice(start + block.start, start + block.stop)
            # A product is faster into one piece of memory than into rows that lie far apart.
            product = made if self.block >= width else hidden.new_empty(len(hidden), block.stop - block.start)
            torch.mm(hidden, output.weight[rows].T, out=product)
            torch.tanh(product.add_(output.bias[rows]), out=made[:, block])
        return made

    def _buffers(self, output: Linear) -> tuple[Tensor, Tensor, bool]:
        """The gradients of weight and bias, and whether they are to be written; `zero_grad` keeps their memory."""
        are_new = output.weight.grad is None or output.bias.grad is None
        if are_new:
            if not self._gradients:
                self._gradients = torch.empty_like(output.weight), torch.empty_like(output.bias)
            output.weight.grad, output.bias.grad = self._gradients
        assert output.weight.grad is not None and output.bias.grad is not None
        return output.weight.grad, output.bias.grad, are_new

    def _blocks(self, width: int, nodes: int) -> Iterator[slice]:
        size = self.block if nodes > FEW_NODES else 2 * self.block
        for start in range(0, width, size):
            yield slice(start, min(start + size, width))


def _nearest(made: Tensor, targets: Sequence[Targets]) -> Tensor:
    """(t,) rows of all owners' missing nodes, one owner after the other, for generated vectors (t, d)."""
    found, before, first = [], 0, 0
    for each in targets:
        own = made[before : before + len(each.neighbours)]
        squares = each.missing.square().sum(dim=1)
        products = (own @ each.missing.T)[:, None]
        found.append(nearest_missing(products, squares, each.neighbours)[:, 0] + first)
        before, first = before + len(own), first + len(each.missing)
    return torch.cat(found)
