"""Train one module in every institution and fold at once, and turn the result into an `Outcome`.

Federated, local and central training differ in the topology alone: a server that averages, no server, or one trainer
that pools all subjects.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.curves import Curves
from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.engines.stacked.clients import StackedClients
from brainfed.engines.stacked.crossings import record_foreign_models, record_global_model, record_pooling, sizes_of
from brainfed.engines.stacked.dropout import Dropout
from brainfed.engines.stacked.kept import kept_stack
from brainfed.engines.stacked.moments import record_moments
from brainfed.engines.stacked.network import StackedNetwork
from brainfed.engines.stacked.operations import first_layer_operations
from brainfed.engines.stacked.propagation import Propagate
from brainfed.engines.stacked.side_by_side import stacks_of_folds
from brainfed.engines.stacked.stacks import Reading, Stack, members, stack_inputs
from brainfed.engines.stacked.unseen import score_unseen
from brainfed.federation.aggregation import Weighting
from brainfed.federation.attacks.poisoning import Federation, attack_of
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.pace import Pace
from brainfed.federation.privacy.drawn_ahead import DrawnAhead
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.federation.schedule import FederationSettings, Topology
from brainfed.federation.selection import Selection
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.strategies.strategy import Strategy
from brainfed.federation.wire import Wire
from brainfed.models.classifier import Classifier
from brainfed.runtime.jobs.run import Run
from brainfed.runtime.precision import Precision
from brainfed.samples.inputs import MethodInputs, Outcome
from brainfed.samples.kept.fitted_model import FittedModel

Server = Callable[[tuple[int, ...], Mapping[str, Tensor], Weighting, Selection], Strategy]
"""Institutions, the model that they start from, weighting, round -> those that train: as `FedAvg` takes them."""


@dataclass(frozen=True)
class Training:
    """One method on one repeat.

    Attributes:
        module: the network of one institution.
        inputs: inputs of the repeat.
        schedule: rounds, optimiser, noise.
        run: settings of the machine.
        topology: `local`, `federated` or `central`.
        shared_tensors: tensors that may leave an institution, name -> axes.
        propagate: graph -> row, column and value of the module's propagation matrix; None without a graph.
        standardise: whether every column is scaled with the training subjects of the fold and institution.
        precision: number format of the products with the features.
        dropout: share of the hidden activations that a step drops.
        server: makes the strategy of a federated training.
        robustness: the attack on its replies.
    """

    module: Classifier
    inputs: MethodInputs
    schedule: FederationSettings
    run: Run
    topology: Topology
    shared_tensors: Mapping[str, tuple[str, ...]]
    propagate: Propagate | None = None
    standardise: bool = True
    precision: Precision = "float32"
    dropout: float = 0.0
    server: Server = FedAvg
    robustness: RobustnessSettings = field(default_factory=RobustnessSettings)

    @property
    def pooled(self) -> bool:
        """Whether one trainer pools all subjects."""
        return self.topology == "central"

    @property
    def shares(self) -> frozenset[str]:
        """Names of the tensors that leave an institution in rounds."""
        return frozenset(parameters_by_wire_name(self.module) if self.topology == "federated" else ())

    @property
    def reading(self) -> Reading:
        """How the module reads the nodes on this machine."""
        reads = frozenset(self.module.reads.values())
        return Reading(reads, self.propagate, torch.device(self.run.device), getattr(torch, self.run.precision))

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of the axes that the ledger knows."""
        widths = self.module.widths
        return {"features": widths[0], "classes": widths[-1]} | {
            f"hidden-{index}": width for index, width in enumerate(widths[1:-1])
        }

    def network(self, folds: Sequence[int], ledger: Ledger) -> StackedNetwork:
        """The untrained stack of these folds; the ledger checks moments that cross."""
        inputs, book = self.inputs, ledger if self.topology == "federated" else None
        trained = members(inputs, folds, book, pooled=self.pooled, standardise=self.standardise)
        stack = stack_inputs(inputs, trained, folds, self.reading)
        dropout = Dropout(self.dropout, stack.folds, inputs.streams, self.schedule.local_epochs)
        return StackedNetwork(self.module, stack, inputs.streams, self.precision, dropout if self.dropout else None)


def train_stacked(training: Training) -> Outcome:
    """Train the folds in stacks that fit into memory, one stack after the other, and join their scores.

    The global model scores an institution without training subjects in a fold. Without a global model, the mean of the
    other institutions' models does, each with its own scaling.

    Returns:
        See `Outcome` for the shapes. The crossings are those of the first fold.
    """
    return train_rounds(training)[0]


def train_rounds(training: Training) -> tuple[Outcome, NDArray[np.float64]]:
    """Train as `train_stacked` does; also return the member scores (T, F, n, C) after every round."""
    inputs, schedule = training.inputs, training.schedule
    ledger = Ledger(training.shared_tensors, training.axes)
    if training.pooled:
        record_pooling(inputs, ledger)
    results, models = _Results.of(inputs, schedule.rounds), list[FittedModel]()
    stacks = stacks_of_folds(training.module, inputs, training.reading.dtype, pooled=training.pooled)
    for index, folds in enumerate(stacks):
        book = ledger if folds[0] == 0 else ledger.blank()
        network = training.network(folds, book)
        progress = training.run.progress if len(stacks) == 1 else _over_stacks(training.run.progress, index, stacks)
        results.collect(network.stack, _federated(training, network, book, progress))
        if inputs.unseen.any() and not training.pooled:
            _record_help(training, network, book)
        if training.topology == "local":
            score_unseen(inputs, network, training.reading, results.round_scores)
        models += kept_stack(network, alone=training.topology == "local") if training.run.keeps_models else []
        # Two stacks at once would not fit.
        del network
    parameters = sum(parameter.numel() for parameter in training.module.parameters())
    counts = {"parameters": parameters, "rounds": schedule.rounds, "local_epochs": schedule.local_epochs}
    counts["first_layer_operations"] = first_layer_operations(training.module, inputs, schedule, training.topology)
    return Outcome(
        results.round_scores[-1],
        "probability",
        results.round_scores,
        results.losses,
        counts,
        ledger.rows(),
        member_scores=results.member_scores[-1],
        models=tuple(models),
    ), results.member_scores


def _record_help(training: Training, network: StackedNetwork, ledger: Ledger) -> None:
    """Record what institutions without training subjects receive, in the stack's first fold."""
    if training.topology == "local":
        record_foreign_models(network.stack, network.stacks(), ledger)
        return
    if training.standardise:
        record_moments(training.inputs, network.stack.folds[0], ledger, sizes_of(training.inputs.institution))
    record_global_model(network.stack, network.stacks(), ledger)


def _federated(
    training: Training, network: StackedNetwork, ledger: Ledger, progress: Callable[[int, int, str], None]
) -> Curves:
    """Train one stack in place and return its curves."""
    folds = network.stack.folds
    clients = StackedClients(network, training.schedule, training.shares, _largest(training, network))
    federate(
        clients,
        _server(clients, training) if training.shares else Alone(clients.institutions),
        _wire(clients, training, ledger),
        training.schedule.rounds,
        training.run.checkpoint.part(f"folds-{folds[0]}-{folds[-1]}"),
        progress,
        training.inputs.link.pace(Pace()),
    )
    return clients.curves


def _largest(training: Training, network: StackedNetwork) -> int:
    """Subjects of the largest institution, on which the number of local steps depends."""
    largest, link = max(network.stack.subjects), training.inputs.link
    return link.largest(largest) if training.shares and training.schedule.batch else largest


def _server(clients: StackedClients, training: Training) -> Strategy:
    schedule = training.schedule
    strategy = training.server(
        clients.institutions,
        clients.start(),
        schedule.weighting,
        Selection(len(clients.institutions), schedule.fraction, training.inputs.streams),
    )
    return training.inputs.link.server(strategy, schedule.rounds)


def _wire(clients: StackedClients, training: Training, ledger: Ledger) -> Wire:
    """The wire; it sends the numbers of subjects if the weights n_m / n or the number of steps depend on them."""
    schedule, stack = training.schedule, clients.network.stack
    sizes = enumerate(clients.samples[:, 0].tolist())
    ahead = DrawnAhead.on(training.run.device, schedule.rounds, schedule.fraction)
    reports = bool(training.shares and (schedule.weighting == "subjects" or schedule.batch))
    attacked = Federation(len(clients.institutions), stack.folds, training.inputs.streams, clients.start())
    return Wire(
        ledger,
        dict(enumerate(stack.subjects)),
        WeightNoise(schedule.noise, training.inputs.streams, stack.folds, ahead=ahead),
        {place: size for place, size in sizes if size > 0} if reports else None,
        attack=attack_of(training.robustness, attacked),
    )


def _over_stacks(
    progress: Callable[[int, int, str], None], index: int, stacks: Sequence[tuple[int, ...]]
) -> Callable[[int, int, str], None]:
    """Progress of one stack as a part of all stacks, which take about as long as each other."""
    folds = stacks[index]

    def reported(done: int, total: int, what: str) -> None:
        reached, _, unit = what.rpartition(", ")
        named = f"folds {folds[0] + 1} to {folds[-1] + 1}" if len(folds) > 1 else f"fold {folds[0] + 1}"
        parts = ", ".join(part for part in (reached, named, unit) if part)
        progress(index * total + done, len(stacks) * total, parts)

    return reported


@dataclass(frozen=True)
class _Results:
    """Scores (T, F, n, C) of tested and of training subjects, and losses (T, M, F) of all stacks; NaN elsewhere."""

    inputs: MethodInputs
    round_scores: NDArray[np.float64]
    member_scores: NDArray[np.float64]
    losses: NDArray[np.float64]

    @classmethod
    def of(cls, inputs: MethodInputs, rounds: int) -> "_Results":
        scores = np.full((rounds, *inputs.labels.shape, inputs.classes), np.nan)
        losses = np.full((rounds, len(inputs.institutions), inputs.folds), np.nan)
        return cls(inputs, scores, scores.copy(), losses)

    def collect(self, stack: Stack, curves: Curves) -> None:
        """Write the curves of the stack's folds."""
        for position, fold in enumerate(stack.folds):
            self.losses[:, :, fold] = curves.losses[:, :, position]
            for index, member in enumerate(stack.members):
                tested, trained = self.inputs.fold[member.nodes] == fold, self.inputs.training(fold)[member.nodes]
                values = curves.probabilities[:, index, position, : len(member.nodes)]
                self.round_scores[:, fold, member.nodes[tested]] = values[:, tested]
                self.member_scores[:, fold, member.nodes[trained]] = values[:, trained]
