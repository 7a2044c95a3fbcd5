"""Train one architecture in every institution and fold at once, and turn the result into an `Outcome`.

Federated, local and central training differ in the topology alone: a server that averages, none, or one trainer that
pools everybody.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.engines.stacked.batches import local_steps
from brainfed.engines.stacked.clients import Curves, StackedClients
from brainfed.engines.stacked.crossings import record_help_for_unseen, record_pooling
from brainfed.engines.stacked.model import StackedModel
from brainfed.engines.stacked.stacks import Member, Stack, members, stack_inputs
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.privacy import WeightNoise
from brainfed.federation.schedule import FederationSettings, Topology
from brainfed.federation.selection import choose
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.strategies.strategy import Strategy
from brainfed.federation.wire import Wire
from brainfed.models.dropout import Dropout
from brainfed.models.stacked_network import CLASSES, Architecture, StackedNetwork
from brainfed.runtime.jobs.run import Run
from brainfed.runtime.precision import Precision
from brainfed.runtime.streams import Streams
from brainfed.samples.inputs import MethodInputs, Outcome

STACK_BYTES = 3 << 30
"""Weights, gradients, Adam's two moments and a fold's own features, of the folds that are trained side by side."""


def train_stacked(
    inputs: MethodInputs,
    settings: FederationSettings,
    run: Run,
    *,
    hidden: tuple[int, ...],
    graph: bool,
    standardise: bool,
    shared_tensors: Mapping[str, tuple[str, ...]],
    precision: Precision = "float32",
    topology: Topology = "federated",
    skip: bool = False,
    dropout: float = 0.0,
) -> Outcome:
    """Train and score; see `Outcome` for the shapes.

    An institution without training subjects in a fold is scored by the global model, or, where there is
    none, by the mean of the other institutions' models, each with its own scaling.
    """
    device, dtype = torch.device(run.device), getattr(torch, run.precision)
    architecture = Architecture(inputs.features[0].shape[1], hidden, graph, skip)
    ledger = Ledger(shared_tensors, axes_of(architecture))
    pooled = topology == "central"
    if pooled:
        record_pooling(inputs, ledger)

    def build(folds: Sequence[int]) -> tuple[Stack, StackedNetwork]:
        trained = members(inputs, folds, pooled=pooled, standardise=standardise)
        stack = stack_inputs(inputs, trained, folds, graph=graph, device=device, dtype=dtype, skip=skip)
        network = StackedNetwork(
            architecture,
            stack.designs,
            stack.propagation,
            folds,
            inputs.streams,
            device,
            dtype,
            stack.own,
            precision,
            dropout_of(dropout, folds, inputs.streams, settings),
        )
        return stack, network

    by_fold = int(len(inputs.features) > 1 or len(inputs.graphs) > 1) + int(len(inputs.features) > 1 and skip)
    size = StackSize(architecture.parameters, architecture.widths[1] + skip * CLASSES, by_fold)
    return train_stacks(inputs, settings, run, ledger, build, size, topology)


def dropout_of(rate: float, folds: Sequence[int], streams: Streams, settings: FederationSettings) -> Dropout | None:
    """Dropout at this rate; None at 0, when nothing is drawn."""
    return Dropout(rate, tuple(folds), streams, settings.local_epochs) if rate else None


@dataclass(frozen=True)
class StackSize:
    """What one fold of a stack holds and multiplies.

    Attributes:
        parameters: learnable numbers of one model.
        columns: width of what multiplies the features; None where steps read parts of them, which are not counted.
        designs: how many designs (n, d) of its own the fold needs, beside those that all folds share.
    """

    parameters: int
    columns: int | None
    designs: int


def train_stacks(
    inputs: MethodInputs,
    settings: FederationSettings,
    run: Run,
    ledger: Ledger,
    build: Callable[[Sequence[int]], tuple[Stack, StackedModel]],
    size: StackSize,
    topology: Topology = "federated",
) -> Outcome:
    """Train as many folds side by side as fit, one stack after the other, and put their scores together.

    Args:
        inputs: of the method.
        settings: of the federation.
        run: of the machine.
        ledger: records what crosses in the first fold.
        build: folds -> their stack and network.
        size: of one fold.
        topology: who trains with whom.
    """
    shared, pooled = topology == "federated", topology == "central"
    round_scores = np.full((settings.rounds, inputs.folds, len(inputs.subjects), inputs.classes), np.nan)
    losses = np.full((settings.rounds, len(inputs.institutions), inputs.folds), np.nan)
    stacks = _chunks(inputs, size, getattr(torch, run.precision), pooled=pooled)
    for index, folds in enumerate(stacks):
        stack, network = build(folds)
        chunk_ledger = ledger if folds[0] == 0 else ledger.blank()
        subjects = [inputs.subjects_among(member.nodes) for member in stack.members]
        clients = StackedClients(
            network, stack.labels, inputs.classes, subjects, settings, folds, inputs.streams, shared=shared
        )
        federate(
            clients,
            _strategy(clients) if shared else Alone(clients.institutions),
            _wire(clients, chunk_ledger),
            settings.rounds,
            run.checkpoint.part(f"folds-{folds[0]}-{folds[-1]}"),
            run.progress if len(stacks) == 1 else _over_stacks(run.progress, index, len(stacks), folds),
        )
        curves = clients.curves
        _collect(inputs, stack, curves, folds, round_scores, losses)
        if not pooled:
            record_help_for_unseen(stack, network.stacks(), chunk_ledger, shared=shared)
        if topology == "local":
            assert isinstance(network, StackedNetwork)
            _score_unseen(inputs, stack, network, folds, round_scores)
        # Two stacks side by side would not fit.
        del stack, network, clients
    counts = {
        "parameters": size.parameters,
        "rounds": settings.rounds,
        "local_epochs": settings.local_epochs,
    }
    if size.columns is not None:
        work = _operations(inputs, size.columns, settings, topology)
        counts["first_layer_operations"] = work
    return Outcome(round_scores[-1], "probability", round_scores, losses, counts, ledger.rows())


def _strategy(clients: StackedClients) -> Strategy:
    settings, streams, count = clients.settings, clients.streams, len(clients.institutions)
    return FedAvg(
        clients.institutions,
        clients.start(),
        settings.weighting,
        lambda number: choose(count, settings.fraction, streams, number),
    )


def _wire(clients: StackedClients, ledger: Ledger) -> Wire:
    """Weights n_m / n, and as many steps everywhere as the largest institution needs, take everybody's number."""
    settings = clients.settings
    sizes = enumerate(clients.samples[:, 0].tolist())
    reports = clients.shared and bool(settings.weighting == "subjects" or settings.batch)
    return Wire(
        ledger,
        dict(enumerate(clients.subjects)),
        WeightNoise(settings.noise, clients.streams, tuple(clients.folds)),
        {place: size for place, size in sizes if size > 0} if reports else {},
    )


def axes_of(architecture: Architecture) -> dict[str, int]:
    """Sizes of the axes that the ledger knows."""
    widths = architecture.widths
    return {"features": widths[0], "classes": widths[-1]} | {
        f"hidden-{index}": width for index, width in enumerate(widths[1:-1])
    }


def _chunks(inputs: MethodInputs, size: StackSize, dtype: torch.dtype, *, pooled: bool) -> list[tuple[int, ...]]:
    """Folds whose weights, gradients, moments and own features fit into `STACK_BYTES` side by side, evenly dealt.

    Beside them the server holds a model, and a round that stays near its start another.
    """
    trainers = 1 if pooled else len(inputs.institutions)
    numbers = (4 * trainers + 2) * size.parameters + 2 * size.designs * inputs.features[0].size
    side_by_side = max(1, STACK_BYTES // (numbers * dtype.itemsize))
    stacks = np.array_split(np.arange(inputs.folds), -(-inputs.folds // side_by_side))
    return [tuple(folds.tolist()) for folds in stacks]


def _over_stacks(
    progress: Callable[[int, int, str], None], index: int, stacks: int, folds: Sequence[int]
) -> Callable[[int, int, str], None]:
    """Progress of one stack as a part of that of all, which take about as long."""

    def told(done: int, total: int, what: str) -> None:
        reached, _, unit = what.rpartition(", ")
        named = f"folds {folds[0] + 1} to {folds[-1] + 1}" if len(folds) > 1 else f"fold {folds[0] + 1}"
        progress(index * total + done, stacks * total, ", ".join(part for part in (reached, named, unit) if part))

    return told


def _collect(
    inputs: MethodInputs,
    stack: Stack,
    curves: Curves,
    folds: tuple[int, ...],
    round_scores: NDArray[np.float64],
    losses: NDArray[np.float64],
) -> None:
    """Write what the rounds of `folds` left into round_scores (T, F, n, C) and losses (T, M, F)."""
    for position, fold in enumerate(folds):
        losses[:, :, fold] = curves.losses[:, :, position]
        for index, member in enumerate(stack.members):
            tested = inputs.fold[member.nodes] == fold
            values = curves.probabilities[:, index, position, : len(member.nodes)]
            round_scores[:, fold, member.nodes[tested]] = values[:, tested]


def _score_unseen(
    inputs: MethodInputs,
    stack: Stack,
    network: StackedNetwork,
    folds: tuple[int, ...],
    round_scores: NDArray[np.float64],
) -> None:
    """Institutions without training subjects: the mean probability of the others' last models."""
    seen = (stack.labels >= 0).any(dim=2).cpu().numpy()
    for position, fold in enumerate(folds):
        for unseen in np.flatnonzero(~seen[:, position]):
            nodes = stack.members[unseen].nodes
            foreign = [
                _score_elsewhere(inputs, stack, network, int(teacher), int(unseen), position, fold)
                for teacher in np.flatnonzero(seen[:, position])
            ]
            tested = inputs.fold[nodes] == fold
            round_scores[:, fold, nodes[tested]] = np.nan
            round_scores[-1, fold, nodes[tested]] = np.mean(foreign, axis=0)[tested]


@torch.no_grad()
def _score_elsewhere(
    inputs: MethodInputs,
    stack: Stack,
    network: StackedNetwork,
    teacher: int,
    unseen: int,
    position: int,
    fold: int,
) -> NDArray[np.float64]:
    """(n, C) probabilities of institution `unseen`'s subjects by the model of institution `teacher`."""
    device, dtype = network.first.weight.device, network.first.weight.dtype
    scaling = stack.members[teacher]
    mean = None if scaling.mean is None else scaling.mean[position : position + 1]
    sd = None if scaling.sd is None else scaling.sd[position : position + 1]
    visitor = (Member(stack.members[unseen].nodes, mean, sd),)
    architecture = network.architecture
    visited = stack_inputs(
        inputs, visitor, (fold,), graph=architecture.graph, device=device, dtype=dtype, skip=architecture.skip
    )
    model = StackedNetwork(
        architecture,
        visited.designs,
        visited.propagation,
        (fold,),
        inputs.streams,
        device,
        dtype,
        visited.own,
        network.precision,
    )
    model.load({name: view[teacher, position : position + 1] for name, view in network.stacks().items()})
    return np.asarray(model.probabilities()[0, 0].cpu().numpy(), dtype=np.float64)


def _operations(inputs: MethodInputs, columns: int, settings: FederationSettings, topology: Topology) -> int:
    """Multiplications and additions on the features, forward and weight gradient, over all steps and folds.

    Institutions of equal size are taken for granted where a round draws some of them.
    """
    everybody = [np.arange(len(inputs.subjects))]
    groups = everybody if topology == "central" else [inputs.members(m) for m in range(len(inputs.institutions))]
    sizes = [inputs.subjects_among(group) for group in groups]
    steps = local_steps(sizes, settings, inputs.streams, drawn=topology == "federated")
    return round(steps / len(sizes) * 2 * 2 * inputs.features[0].size * columns * inputs.folds)
