"""Nodes and neighbours as bags: each node's bag holds itself and all nodes that send to it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from brainfed.samples.graph_samples import GraphSamples
from brainfed.samples.labelled_subjects import IntArray


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
        """Bags on a device."""
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
        node_start, nodes = pieces(self.node_start, graphs)
        start = np.concatenate([[0], np.cumsum(np.diff(self.start)[nodes])])
        _, members = pieces(self.start[self.node_start], graphs)
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


def pieces(start: IntArray, chosen: IntArray) -> tuple[IntArray, IntArray]:
    """Starts (k + 1,) of the chosen pieces laid end to end, and where their members were."""
    sizes = np.diff(start)[chosen]
    fresh = np.concatenate([[0], np.cumsum(sizes)])
    return fresh, np.repeat(start[:-1][chosen] - fresh[:-1], sizes) + np.arange(fresh[-1])
