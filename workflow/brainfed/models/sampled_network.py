"""FedNI Table IV's classifier on graphs that do not fit: each step reads the rows of few nodes, no A X is kept.

The stacked network with the same names, starts and results; where a step draws some of the neighbours its gradient is
an estimate of the stacked network's, where it takes them all it is the same.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor
from torch.nn.functional import cross_entropy, elu

from brainfed.graphs.sampling import Hop, Incoming, draw_hop
from brainfed.models.propagation import compressed_rows
from brainfed.models.stacked_network import Architecture, class_probabilities, initial_weight
from brainfed.runtime.streams import Streams

SCORED_ROWS = 2048

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """One institution in one fold.

    Attributes:
        nodes: number of its nodes n.
        incoming: their normalised adjacency.
        rows: positions (b,) -> their scaled features (b, d).
    """

    nodes: int
    incoming: Incoming
    rows: Callable[[IntArray], Tensor]


class SampledNetwork:
    """M institutions x F folds of two graph convolutions and a linear layer, one after the other.

    Args:
        architecture: with a graph and without a skip connection.
        parts: (M)(F).
        neighbours: at most so many others that a node hears in each convolution; 0: all.
        folds: the numbers of the folds, which key the initial weights and the draws.
        streams: of the repeat.
    """

    def __init__(
        self,
        architecture: Architecture,
        parts: Sequence[Sequence[Part]],
        neighbours: tuple[int, int],
        folds: Sequence[int],
        streams: Streams,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.architecture = architecture
        self.parts = parts
        self.neighbours = neighbours
        self.folds = tuple(folds)
        self.streams = streams
        self.step: tuple[int, int, int] = (0, 0, 0)
        count = len(parts)
        self.weights, self.biases = [], []
        for layer, (rows, columns) in enumerate(pairwise(architecture.widths)):
            starts = torch.stack([initial_weight(streams, layer, fold, rows, columns) for fold in folds])
            self.weights.append(torch.nn.Parameter(starts.to(device, dtype).repeat(count, 1, 1, 1)))
            nothing = torch.zeros(count, len(self.folds), columns, device=device, dtype=dtype)
            self.biases.append(torch.nn.Parameter(nothing))
        for parameter in self.parameters():
            parameter.grad = torch.zeros_like(parameter)

    def parameters(self) -> list[torch.nn.Parameter]:
        """All learnable tensors."""
        return [*self.weights, *self.biases]

    def stacks(self) -> dict[str, Tensor]:
        """Views (M, F, ...) of all learnable tensors by name, without gradient."""
        views = {f"weight-{layer}": weight.detach() for layer, weight in enumerate(self.weights)}
        return views | {f"bias-{layer}": bias.detach() for layer, bias in enumerate(self.biases)}

    def draw_anew(self, round_index: int, epoch: int, step: int) -> None:
        """Key the draws of the next step."""
        self.step = (round_index, epoch, step)

    def training_step(self, labels: Tensor, chosen: Tensor) -> Tensor:
        """Fill every gradient from the labelled nodes; arguments and result as for the stacked network."""
        losses = torch.full(labels.shape[:2], float("nan"), device=labels.device, dtype=self.weights[0].dtype)
        for parameter in self.parameters():
            assert parameter.grad is not None
            parameter.grad.zero_()
        for institution in torch.nonzero(chosen)[:, 0].tolist():
            for position in range(len(self.folds)):
                own = labels[institution, position]
                seeds = torch.nonzero(own >= 0)[:, 0]
                if len(seeds):
                    losses[institution, position] = self._learn(institution, position, seeds, own[seeds])
        return losses

    def _learn(self, institution: int, position: int, seeds: Tensor, labels: Tensor) -> Tensor:
        """Write the gradient of one institution and fold; its loss."""
        part = self.parts[institution][position]
        second = self._drawn(part, institution, position, 1, seeds.cpu().numpy())
        first = self._drawn(part, institution, position, 0, second.senders)
        leaves = [parameter[institution, position].detach().requires_grad_() for parameter in self.parameters()]
        (w_0, w_1, w_2, b_0, b_1, b_2) = leaves
        hidden = elu((self._sparse(first.matrix) @ part.rows(first.senders)) @ w_0 + b_0)
        logits = (self._sparse(second.matrix) @ (hidden @ w_1) + b_1) @ w_2 + b_2
        loss = cross_entropy(logits, labels)
        for parameter, gradient in zip(self.parameters(), torch.autograd.grad(loss, leaves), strict=True):
            assert parameter.grad is not None
            parameter.grad[institution, position] = gradient
        return loss.detach()

    def _drawn(self, part: Part, institution: int, position: int, layer: int, receivers: IntArray) -> Hop:
        random = self.streams.numpy("sampled-neighbours", institution, self.folds[position], *self.step, layer)
        return draw_hop(part.incoming, receivers, self.neighbours[layer], random)

    def _sparse(self, matrix: csr_array) -> Tensor:
        values = torch.from_numpy(matrix.data).to(self.weights[0])
        pointers, columns = (
            torch.from_numpy(index.astype(np.int64)).to(values.device) for index in (matrix.indptr, matrix.indices)
        )
        return compressed_rows(pointers, columns, values, matrix.shape)

    @torch.no_grad()
    def probabilities(self) -> Tensor:
        """(M, F, n, C) of every class on the whole graph, features read block by block."""
        width = max(part.nodes for parts in self.parts for part in parts)
        classes = self.architecture.widths[-1]
        shape = (len(self.parts), len(self.folds), width, classes)
        found = torch.full(shape, 1 / classes, dtype=torch.float64, device=self.weights[0].device)
        for institution, parts in enumerate(self.parts):
            for position, part in enumerate(parts):
                w_0, w_1, w_2, b_0, b_1, b_2 = (parameter[institution, position] for parameter in self.parameters())
                everybody = np.arange(part.nodes)
                propagation = self._sparse(whole_graph(part))
                starts = range(0, part.nodes, SCORED_ROWS)
                product = torch.cat([part.rows(everybody[start : start + SCORED_ROWS]) @ w_0 for start in starts])
                hidden = elu(propagation @ product + b_0)
                logits = (propagation @ (hidden @ w_1) + b_1) @ w_2 + b_2
                found[institution, position, : part.nodes] = class_probabilities(logits)
        return found

    @torch.no_grad()
    def load(self, values: dict[str, Tensor]) -> None:
        """Take tensors (F, ...), the same for every institution, or (M, F, ...)."""
        for name, view in self.stacks().items():
            view.copy_(values[name])


def whole_graph(part: Part) -> csr_array:
    """(n, n) normalised adjacency."""
    incoming = part.incoming
    return csr_array((incoming.value, incoming.column, incoming.pointer), shape=(part.nodes, part.nodes))
