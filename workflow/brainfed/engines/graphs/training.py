"""Train a GIN on whole graphs in every institution, and turn the result into an `Outcome`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.curves import of_subjects
from brainfed.engines.graphs.clients import GraphClients
from brainfed.engines.graphs.cohort import GraphCohort
from brainfed.engines.parameter_names import wire_name
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.pace import Pace
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.schedule import FederationSettings, Topology
from brainfed.federation.sharing import record_help, record_pools
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.strategy import Strategy
from brainfed.federation.wire import Wire
from brainfed.models.gin import GIN, SHARED
from brainfed.runtime.jobs.run import Run
from brainfed.samples.graph_inputs import GraphInputs
from brainfed.samples.inputs import IntArray, Outcome
from brainfed.samples.training_folds import require_training_subjects

Server = Callable[[tuple[int, ...], Mapping[str, Tensor]], Strategy]
"""Institutions and the shared layers that they start from -> the server."""


@dataclass(frozen=True)
class GraphTraining:
    """One method on one repeat.

    Attributes:
        network: made for a number of features of a node and a number of classes.
        inputs: inputs of the repeat.
        schedule: rounds, optimiser, noise.
        run: settings of the machine.
        topology: `local`, `federated` or `central`.
        shared_tensors: tensors that may leave an institution, name -> axes.
        server: of a federated training.
        sends_gradient_norm: whether the server reads the norms of gradients.
    """

    network: Callable[[int, int], GIN]
    inputs: GraphInputs
    schedule: FederationSettings
    run: Run
    topology: Topology
    shared_tensors: Mapping[str, tuple[str, ...]]
    server: Server | None = None
    sends_gradient_norm: bool = False

    @property
    def pools(self) -> IntArray:
        """(n,) who trains with each subject: its institution, or one trainer for all."""
        return self.inputs.institution if self.topology != "central" else np.zeros_like(self.inputs.institution)

    def clients(self) -> tuple[GraphClients, list[IntArray]]:
        """The untrained institutions, and the positions (M) of their subjects."""
        inputs, folds = self.inputs, tuple(range(self.inputs.folds))
        members = [np.flatnonzero(self.pools == pool) for pool in range(len(self._shapes))]
        cohort = GraphCohort.of(inputs.graphs, inputs.labels, members, folds, inputs.classes, self._widths)
        modules = [[self._module(fold, place) for fold in folds] for place in range(len(members))]
        shared = [wire_name(name) for name, _ in modules[0][0].named_parameters() if name.startswith(SHARED)]
        return GraphClients(
            modules,
            cohort,
            self.schedule,
            inputs.streams,
            shared if self.topology == "federated" else (),
            sends_gradient_norm=self.sends_gradient_norm,
        ), members

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """Features and classes of every trainer's network: its institution's, of a pooled one the most of all."""
        own = [self.inputs.shape(place) for place in range(len(self.inputs.institutions))]
        return own if self.topology != "central" else [tuple(map(max, zip(*own, strict=True)))]

    @property
    def _widths(self) -> list[int]:
        return [features for features, _ in self._shapes]

    def _module(self, fold: int, place: int) -> GIN:
        module = self.network(*self._shapes[place])
        module.start(self.inputs.streams, fold, place)
        return module.to(self.run.device, getattr(torch, self.run.precision))


def train_graphs(training: GraphTraining) -> Outcome:
    """Train all folds side by side.

    Returns:
        See `Outcome` for the shapes; `clusters` of a server that has them. The crossings are those of the first fold.

    Raises:
        UserError: a fold has no training subject.
    """
    inputs, schedule = training.inputs, training.schedule
    for fold in range(inputs.folds):
        require_training_subjects(inputs, fold)
    clients, members = training.clients()
    hidden = training.network(1, inputs.classes).hidden
    sizes = {"features": inputs.graphs[0].nodes.shape[1], "hidden": hidden, "classes": inputs.classes, "ends": 2}
    ledger = Ledger(training.shared_tensors, sizes)
    if training.topology == "central" and len(inputs.institutions) > 1:
        _record_pooling(inputs, ledger)
    server: Strategy = Alone(clients.institutions)
    if training.server:
        server = inputs.link.server(training.server(clients.institutions, clients.start()), schedule.rounds)
    trained = {place: count for place, count in enumerate(clients.samples[:, 0].tolist()) if count}
    noise = WeightNoise(schedule.noise, inputs.streams, tuple(range(inputs.folds)))
    people = {place: len(own) for place, own in enumerate(members)}
    wire = Wire(ledger, people, noise, trained if training.server else None)
    run, pace = training.run, inputs.link.pace(Pace())
    federate(clients, server, wire, schedule.rounds, run.checkpoint, run.progress, pace)
    scores = of_subjects(inputs, members, clients.curves.probabilities, inputs.tested, range(inputs.folds))
    _score_unseen(inputs, clients, members, scores)
    _record_help(clients, members, ledger)
    parameters = sum(parameter.numel() for parameter in training._module(0, 0).parameters())
    counts = {"parameters": parameters, "rounds": schedule.rounds, "local_epochs": schedule.local_epochs}
    # Pooled institutions have one loss.
    losses = np.repeat(clients.curves.losses, len(inputs.institutions) // len(members), axis=1)
    return Outcome(
        scores[-1],
        "probability",
        scores,
        losses,
        counts,
        ledger.rows(),
        clusters=getattr(server, "clusters", None),
        member_scores=_member_scores(inputs, clients, members),
    )


def _member_scores(inputs: GraphInputs, clients: GraphClients, members: list[IntArray]) -> NDArray[np.float64]:
    """(F, n, C) probabilities of the training subjects of each fold by the last networks; 0 of a class they lack."""
    scores = np.full((*inputs.labels.shape, inputs.classes), np.nan)
    for place, position in np.argwhere(_trained(clients)).tolist():
        own = members[place][inputs.training(position)[members[place]]]
        found = clients.member_probabilities(place, position)
        scores[position, own] = 0
        scores[position, own, : found.shape[1]] = found
    return scores


def _score_unseen(
    inputs: GraphInputs, clients: GraphClients, members: list[IntArray], scores: NDArray[np.float64]
) -> None:
    """Write the mean probability of the others' last networks for an institution without training graphs."""
    for place, own in enumerate(members):
        for fold in np.flatnonzero(~_trained(clients)[place]).tolist():
            tested = inputs.fold[own] == fold
            others = np.flatnonzero(_trained(clients)[:, fold]).tolist()
            scores[:, fold, own[tested]] = np.nan
            if tested.any():
                found = np.mean([clients.foreign_probabilities(other, place, fold) for other in others], axis=0)
                scores[-1, fold, own[tested]] = found[tested]


def _trained(clients: GraphClients) -> NDArray[np.bool_]:
    """(M, F) whether an institution has a training graph in a fold."""
    return np.asarray(clients.samples.numpy() > 0)


def _record_help(clients: GraphClients, members: list[IntArray], ledger: Ledger) -> None:
    """Record the whole networks that score an institution without training graphs, in the first fold."""
    trained = _trained(clients)[:, 0]
    sizes = {place: len(own) for place, own in enumerate(members) if len(own)}
    network = {wire_name(name): (tuple(stack.shape[1:]), stack.element_size()) for name, stack in clients.network(0)}
    helpers = {place: size for place, size in sizes.items() if trained[place]}
    record_help(ledger, helpers, {place: size for place, size in sizes.items() if not trained[place]}, network)


def _record_pooling(inputs: GraphInputs, ledger: Ledger) -> None:
    """Record that all graphs and labels leave the institutions."""
    graphs, sizes = inputs.graphs[0], np.bincount(inputs.institution)
    nodes = np.bincount(inputs.institution, np.diff(graphs.node_start)).astype(int)
    edges = np.bincount(inputs.institution, np.diff(graphs.edge_start)).astype(int)
    width, entry = graphs.nodes.shape[1], graphs.nodes.itemsize
    record_pools(
        ledger,
        dict(enumerate(sizes.tolist())),
        {
            code: {
                "nodes": ((int(nodes[code]), width), entry),
                "edges": ((int(edges[code]), 2), graphs.source.itemsize),
                "labels": ((int(sizes[code]),), 1),
            }
            for code in range(len(sizes))
        },
    )
