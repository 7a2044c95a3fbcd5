"""One module in every institution and fold at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.engines.stacked.clients import StackedClients
from brainfed.engines.stacked.crossings import record_pooling
from brainfed.engines.stacked.dropout import Dropout
from brainfed.engines.stacked.moments import record_moments
from brainfed.engines.stacked.network import StackedNetwork
from brainfed.engines.stacked.operations import first_layer_operations
from brainfed.engines.stacked.propagation import Propagate
from brainfed.engines.stacked.side_by_side import stacks_of_folds
from brainfed.engines.stacked.stacks import Reading, members, stack_inputs
from brainfed.engines.training import Server, Training, averaging
from brainfed.federation.defences.defence import defence_of
from brainfed.federation.ledger import Ledger
from brainfed.federation.privacy.drawn_ahead import DrawnAhead
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.schedule import FederationSettings
from brainfed.models.classifier import Classifier
from brainfed.runtime.jobs.checkpoints import Checkpoint
from brainfed.runtime.precision import Precision
from brainfed.samples.inputs import MethodInputs


@dataclass(frozen=True, kw_only=True)
class StackedTraining(Training[MethodInputs, FederationSettings]):
    """A classifier of `models` on rows of features, with or without a graph.

    Attributes:
        module: the network of one institution.
        propagate: graph -> row, column and value of the module's propagation matrix; None without a graph.
        standardise: whether every column is scaled with the training subjects of the fold and institution.
        precision: number format of the products with the features.
        dropout: share of the hidden activations that a step drops.
    """

    module: Classifier
    propagate: Propagate | None = None
    standardise: bool = True
    precision: Precision = "float32"
    dropout: float = 0.0

    @property
    def pooled(self) -> bool:
        """Whether one trainer pools all subjects."""
        return self.topology == "central"

    @property
    def shares(self) -> frozenset[str]:
        """Names of the tensors that leave an institution in rounds."""
        return frozenset(parameters_by_wire_name(self.module) if self.federated else ())

    @property
    def reading(self) -> Reading:
        """How the module reads the nodes on this machine."""
        reads = frozenset(self.module.reads.values())
        return Reading(reads, self.propagate, torch.device(self.run.device), getattr(torch, self.run.precision))

    @property
    def sizes(self) -> dict[int, int]:
        """Trainer -> number of its subjects; generated nodes are none."""
        return {place: self.inputs.subjects_among(own) for place, own in enumerate(self.members)}

    @property
    def stacks(self) -> list[tuple[int, ...]]:
        """As many folds at once as fit into memory."""
        return stacks_of_folds(self.module, self.inputs, self.reading.dtype, pooled=self.pooled)

    @property
    def reports(self) -> bool:
        """Whether the weights n_m / n or the number of steps depend on the numbers of subjects."""
        return self.federated and (self.schedule.weighting == "subjects" or self.schedule.batch > 0)

    @property
    def counts(self) -> dict[str, int]:
        """Operations on the features, which are nearly all of a training."""
        operations = first_layer_operations(self.module, self.inputs, self.schedule, self.topology)
        return {"first_layer_operations": operations}

    @property
    def usual_server(self) -> Server:
        """The mean of the institutions that the schedule draws, with its weights, or the defence in its place."""
        return averaging(self.schedule, self.inputs.streams, defence_of(self.robustness))

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of the axes that the ledger knows."""
        widths = self.module.widths
        return {"features": widths[0], "classes": widths[-1]} | {
            f"hidden-{index}": width for index, width in enumerate(widths[1:-1])
        }

    def ledger(self) -> Ledger:
        """Pooled data cross before the first round; so do moments for institutions without training subjects."""
        inputs, ledger = self.inputs, Ledger(self.shared_tensors, self.axes)
        if self.pooled:
            record_pooling(inputs, ledger)
        elif self.federated and self.standardise and inputs.unseen.any():
            record_moments(inputs, 0, ledger, {place: size for place, size in self.sizes.items() if size})
        return ledger

    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> StackedClients:
        """The institutions; the number of local steps depends on the largest one, which may be elsewhere."""
        network, link = self.network(folds, ledger), self.inputs.link
        largest = max(network.stack.subjects)
        largest = link.largest(largest) if self.federated and self.schedule.batch else largest
        return StackedClients(network, self.inputs, self.schedule, self.shares, largest)

    def network(self, folds: Sequence[int], ledger: Ledger) -> StackedNetwork:
        """The untrained stack of these folds; the ledger checks moments that cross."""
        inputs, book = self.inputs, ledger if self.federated else None
        trained = members(inputs, folds, book, pooled=self.pooled, standardise=self.standardise)
        stack = stack_inputs(inputs, trained, folds, self.reading)
        dropout = Dropout(self.dropout, stack.folds, inputs.streams, self.schedule.local_epochs)
        return StackedNetwork(self.module, stack, inputs.streams, self.precision, dropout if self.dropout else None)

    def noise(self, folds: tuple[int, ...]) -> WeightNoise:
        """The schedule's, drawn ahead of the rounds."""
        ahead = DrawnAhead.on(self.run.device, self.schedule.rounds, self.schedule.fraction)
        return WeightNoise(self.schedule.noise, self.inputs.streams, folds, ahead=ahead)

    def checkpoint(self, folds: tuple[int, ...]) -> Checkpoint:
        """One state a stack."""
        return self.run.checkpoint.part(f"folds-{folds[0]}-{folds[-1]}")
