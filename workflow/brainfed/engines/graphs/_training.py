"""A GIN on whole graphs in every institution, all folds side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from brainfed.engines import Server, Training, averaging, wire_name
from brainfed.engines.graphs._clients import GraphClients, GraphCohort
from brainfed.federation import FederationSettings, Ledger, WeightNoise, record_pools
from brainfed.models import GIN, SHARED
from brainfed.samples import GraphInputs


@dataclass(frozen=True, kw_only=True)
class GraphTraining(Training[GraphInputs, FederationSettings]):
    """A GIN on whole graphs; its convolutions are shared, its first and last layers never are.

    Attributes:
        network: made for a number of features of a node and a number of classes.
        sends_gradient_norm: whether the server reads the norms of gradients.
    """

    network: Callable[[int, int], GIN]
    sends_gradient_norm: bool = False

    @property
    def reports(self) -> bool:
        """Every server reads the numbers of training graphs."""
        return self.federated

    @property
    def usual_server(self) -> Server:
        """The mean of the institutions that the schedule draws, with its weights."""
        return averaging(self.schedule, self.inputs.streams)

    def ledger(self) -> Ledger:
        """Pooled graphs cross before the first round."""
        inputs = self.inputs
        width, hidden = inputs.graphs[0].nodes.shape[1], self.network(1, inputs.classes).hidden
        axes = {"features": width, "hidden": hidden, "classes": inputs.classes, "ends": 2}
        ledger = Ledger(self.shared_tensors, axes)
        if self.pooled and len(inputs.institutions) > 1:
            _record_pooling(inputs, ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], _ledger: Ledger) -> GraphClients:
        """The institutions with their own graphs."""
        inputs, members, shapes = self.inputs, self.members, self._shapes
        widths = [features for features, _ in shapes]
        cohort = GraphCohort.of(inputs.graphs, inputs.labels, members, folds, inputs.classes, widths)
        modules = [[self._module(fold, place) for fold in folds] for place in range(len(members))]
        shared = [wire_name(name) for name, _ in modules[0][0].named_parameters() if name.startswith(SHARED)]
        shares, sends_norm = shared if self.federated else (), self.sends_gradient_norm
        return GraphClients(modules, cohort, self.schedule, inputs.streams, shares, sends_gradient_norm=sends_norm)

    def noise(self, folds: tuple[int, ...]) -> WeightNoise:
        """The schedule's."""
        return WeightNoise(self.schedule.noise, self.inputs.streams, folds)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """Features and classes of every trainer's network: its institution's, of a pooled one the most of all."""
        own = [self.inputs.shape(place) for place in range(len(self.inputs.institutions))]
        return [tuple(map(max, zip(*own, strict=True)))] if self.pooled else own

    def _module(self, fold: int, place: int) -> GIN:
        module = self.network(*self._shapes[place])
        module.start(self.inputs.streams, fold, place)
        return module.to(self.run.device, getattr(torch, self.run.precision))


def _record_pooling(inputs: GraphInputs, ledger: Ledger) -> None:
    """Record that all graphs and labels leave the institutions."""
    graphs, sizes = inputs.graphs[0], np.bincount(inputs.institution)
    nodes = np.bincount(inputs.institution, np.diff(graphs.node_start)).astype(int)
    edges = np.bincount(inputs.institution, np.diff(graphs.edge_start)).astype(int)
    width, entry = graphs.nodes.shape[1], graphs.nodes.itemsize
    contents = {
        code: {
            "nodes": ((int(nodes[code]), width), entry),
            "edges": ((int(edges[code]), 2), graphs.source.itemsize),
            "labels": ((int(sizes[code]),), 1),
        }
        for code in range(len(sizes))
    }
    record_pools(ledger, dict(enumerate(sizes.tolist())), contents)
