"""Graphs of one institution as the blocks that a GIN reads: bags of neighbours, and rows that are computed once."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import embedding_bag

from brainfed.runtime import IntArray
from brainfed.samples import GraphSamples, rows_of


@dataclass(frozen=True)
class Bags:
    """Sets of rows.

    Attributes:
        member: rows of all bags, int32.
        start: (bags + 1,) bag i holds `member[start[i] : start[i + 1]]`, int32.
    """

    member: Tensor
    start: Tensor

    @classmethod
    def of(cls, member: IntArray, start: IntArray, device: torch.device) -> "Bags":
        """The bags, copied to a device."""
        return cls(*(torch.from_numpy(each.astype(np.int32)).to(device) for each in (member, start)))

    @classmethod
    def inverse(cls, place: IntArray, count: int, device: torch.device) -> "Bags":
        """For each of `count` places, the rows that lie there: the adjoint of reading the rows `place`."""
        start = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=count))])
        return cls.of(np.argsort(place, kind="stable"), start, device)

    def sums(self, rows: Tensor) -> Tensor:
        """The sum of each bag's rows: a sparse product in a quarter of the time of torch's."""
        return embedding_bag(self.member, rows, self.start, mode="sum", include_last_offset=True)


@dataclass(frozen=True)
class Wiring:
    """The bags of graphs laid end to end.

    Attributes:
        node_start: (n + 1,) first node of each graph.
        start: (N + 1,) first member of each node's bag.
        member: members of the bags, as numbers of nodes inside their graph.
    """

    node_start: IntArray
    start: IntArray
    member: IntArray

    @classmethod
    def to_receivers(cls, graphs: GraphSamples) -> "Wiring":
        """Each node's bag holds itself and those that send to it."""
        return cls._sorted(graphs, graphs.source, graphs.target)

    @classmethod
    def to_senders(cls, graphs: GraphSamples) -> "Wiring":
        """Each node's bag holds itself and those that it sends to: the adjoint of `to_receivers`."""
        return cls._sorted(graphs, graphs.target, graphs.source)

    @classmethod
    def _sorted(cls, graphs: GraphSamples, member: IntArray, holder: IntArray) -> "Wiring":
        sizes = np.diff(graphs.node_start)
        first = np.repeat(graphs.node_start[:-1], np.diff(graphs.edge_start))
        own = np.arange(graphs.node_start[-1])
        inside = own - np.repeat(graphs.node_start[:-1], sizes)
        holders, members = np.concatenate([holder + first, own]), np.concatenate([member, inside])
        start = np.concatenate([[0], np.cumsum(np.bincount(holders, minlength=len(own)))])
        return cls(graphs.node_start, start, members[np.lexsort((members, holders))])

    def among(self, graphs: IntArray) -> tuple["Wiring", IntArray]:
        """The wiring of some graphs, and the (N',) numbers that their nodes had."""
        node_start, nodes = rows_of(self.node_start, graphs)
        start = np.concatenate([[0], np.cumsum(np.diff(self.start)[nodes])])
        _, members = rows_of(self.start[self.node_start], graphs)
        return Wiring(node_start, start, self.member[members]), nodes

    @property
    def index(self) -> IntArray:
        """Members as numbers of nodes among all graphs."""
        return self.member + np.repeat(self.node_start[:-1], np.diff(self.start[self.node_start]))

    @property
    def graph(self) -> IntArray:
        """(N,) the graph of each node."""
        return np.repeat(np.arange(len(self.node_start) - 1), np.diff(self.node_start))

    def same(self, other: "Wiring") -> bool:
        """Whether both have the same bags."""
        return np.array_equal(self.start, other.start) and np.array_equal(self.member, other.member)


# Nodes that a network without dropout cannot distinguish, layer by layer (Weisfeiler and Leman 1968; Xu et al. 2019).
#
# With few node labels most nodes see what another node sees: the first layer of PROTEINS has 1,027 distinct inputs for
# 43,471 nodes, its third layer 36,143. Every row of a layer is computed once.


def distinct_rows(rows: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """The first of each kind of equal rows (u,), and the kind of every row (N,)."""
    return _kinds(row.tobytes() for row in rows)


def distinct_bags(wiring: Wiring, kind: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Bags whose members are of the same kinds.

    Args:
        kind: (N,) kinds of the nodes.

    Returns:
        Members (kinds) and starts (u + 1,) of one bag of each new kind, and the new kind of every node (N,).
    """
    sizes = np.diff(wiring.start)
    members = kind[wiring.index]
    members = members[np.lexsort((members, np.repeat(np.arange(len(sizes)), sizes)))]
    starts = wiring.start.tolist()
    first, fresh = _kinds(members[starts[node] : starts[node + 1]].tobytes() for node in range(len(sizes)))
    kept = np.zeros(len(sizes), dtype=bool)
    kept[first] = True
    return members[np.repeat(kept, sizes)], np.concatenate([[0], np.cumsum(sizes[first])]), fresh


def in_order(kind: IntArray) -> tuple[IntArray, IntArray]:
    """The kinds that occur (u,), in the order of their first occurrence, and the place there of each (N,)."""
    occurring, first, place = np.unique(kind, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return occurring[order], np.argsort(order)[place]


def _kinds(contents: Iterable[bytes]) -> tuple[IntArray, IntArray]:
    """Number the contents in the order of their first occurrence."""
    known: dict[bytes, int] = {}
    kind = np.array([known.setdefault(content, len(known)) for content in contents], dtype=np.int64)
    first = np.full(len(known), len(kind))
    np.minimum.at(first, kind, np.arange(len(kind)))
    return first, kind


# What the network of one institution reads: in a local step, and in scoring.
#
# The first convolution reads sums of fixed features, so these are formed once: with A' = A + I and the linear layer
# before it, A' (X P + 1 b) = [A' X, A' 1] [P; b]. Rows that are equal are held once.

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
        read: (N,) place in `row` of each node's row; None: its own number.
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
        """The graphs `chosen` for scoring, by a network of so many convolutions."""
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
