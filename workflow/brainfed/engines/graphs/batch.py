"""What the network of one institution reads: in a local step, and in scoring.

The first convolution reads sums of fixed features, so these are formed once: with A' = A + I and the linear layer
before it, A' (X P + 1 b) = [A' X, A' 1] [P; b]. Rows that are equal are held once.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.graphs.distinct import distinct_bags, distinct_rows, in_order
from brainfed.engines.graphs.wiring import Bags, Wiring
from brainfed.samples.graph_samples import GraphSamples
from brainfed.samples.labelled_subjects import IntArray

NODES = 4000
"""Nodes of a block: an activation, 64 wide, has the size of a core's cache, a megabyte."""

WORTH = 0.5
"""Largest share of distinct rows for which equal ones are computed once."""


@dataclass(frozen=True)
class Block:
    """Some graphs of a local step, with N nodes.

    Attributes:
        table: `Graphs.rows`.
        row: the rows of the table that its nodes have, each once, or those of all nodes in turn.
        read: (N,) place in `row` of each node's; None: its own number.
        nodes: the nodes of each row; None: its own number.
        messages: each node and those that send to it.
        answers: each node and those that it sends to.
        members: the nodes of each graph.
        graph: (N,) the graph of each node.
    """

    table: Tensor
    row: Tensor
    read: Tensor | None
    nodes: Bags | None
    messages: Bags
    answers: Bags
    members: Bags
    graph: Tensor


@dataclass(frozen=True)
class Scored:
    """Some graphs for scoring, each distinct row of each layer once.

    Attributes:
        table: `Graphs.rows`.
        row: the rows of the table that the first convolution reads.
        layers: for each convolution after the first, the rows of the layer before that each of its rows adds.
        members: the rows of the last convolution that each graph adds.
    """

    table: Tensor
    row: Tensor
    layers: tuple[Bags, ...]
    members: Bags


@dataclass
class Graphs:
    """The graphs of one institution.

    Args:
        samples: the graphs.
        like: a tensor of the device and precision of the network.

    Attributes:
        rows: (u, d + 1) distinct rows of [A' X, A' 1].
    """

    samples: GraphSamples
    like: Tensor
    rows: Tensor = field(init=False)

    def __post_init__(self) -> None:
        """Form what is constant."""
        self._wiring, senders = Wiring.to_receivers(self.samples), Wiring.to_senders(self.samples)
        self._senders = self._wiring if self._wiring.same(senders) else senders
        nodes = torch.from_numpy(self.samples.nodes).double()
        bags = Bags.of(self._wiring.index, self._wiring.start, nodes.device)
        sums = bags.sums(torch.cat([nodes, torch.ones(len(nodes), 1)], dim=1)).to(self.like.dtype)
        first, self._kind = distinct_rows(sums.numpy())
        self.rows = sums[torch.from_numpy(first)].to(self.like.device)

    def blocks(self, chosen: IntArray) -> list[Block]:
        """The graphs `chosen` (positions), in that order, about `NODES` nodes at a time."""
        return [self._block(part) for part in self._parts(chosen)]

    def scored(self, chosen: IntArray, layers: int) -> list[Scored]:
        """The same graphs for scoring by a network of so many convolutions."""
        return [self._scored(part, layers) for part in self._parts(chosen)]

    def _parts(self, chosen: IntArray) -> list[IntArray]:
        nodes = np.cumsum(np.diff(self.samples.node_start)[chosen])
        parts = max(round(int(nodes[-1]) / NODES), 1)
        cuts = np.searchsorted(nodes, nodes[-1] * np.arange(1, parts) / parts)
        return [part for part in np.split(chosen, cuts) if len(part)]

    def _block(self, chosen: IntArray) -> Block:
        wiring, nodes = self._wiring.among(chosen)
        senders = wiring if self._senders is self._wiring else self._senders.among(chosen)[0]
        device, kind = self.like.device, self._kind[nodes]
        # In the order of these nodes, so that sums do not depend on other graphs.
        row, read = in_order(kind)
        distinct = len(row) <= WORTH * len(kind)
        messages = Bags.of(wiring.index, wiring.start, device)
        return Block(
            self.rows,
            torch.from_numpy(row if distinct else kind).to(device),
            torch.from_numpy(read).to(device) if distinct else None,
            Bags.inverse(read, len(row), device) if distinct else None,
            messages,
            messages if senders is wiring else Bags.of(senders.index, senders.start, device),
            Bags.of(np.arange(len(nodes)), wiring.node_start, device),
            torch.from_numpy(wiring.graph).to(device),
        )

    def _scored(self, chosen: IntArray, layers: int) -> Scored:
        wiring, nodes = self._wiring.among(chosen)
        row, kind = in_order(self._kind[nodes])
        distinct, device, bags = len(row) <= WORTH * len(kind), self.like.device, []
        if not distinct:
            row, kind = self._kind[nodes], np.arange(len(nodes))
        for _ in range(layers - 1):
            if distinct:
                members, start, kind = distinct_bags(wiring, kind)
            else:
                members, start = wiring.index, wiring.start
            bags.append(Bags.of(members, start, device))
        return Scored(
            self.rows, torch.from_numpy(row).to(device), tuple(bags), Bags.of(kind, wiring.node_start, device)
        )
