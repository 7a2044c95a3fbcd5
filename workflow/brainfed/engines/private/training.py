"""Train a network of single subjects in every institution, in private steps or without privacy, to an `Outcome`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.curves import of_subjects
from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.engines.private.clients import PrivateClients
from brainfed.engines.private.cohort import PrivateCohort
from brainfed.federation.ledger import Ledger
from brainfed.federation.loop import federate
from brainfed.federation.pace import Pace
from brainfed.federation.privacy.schedule import PrivateSchedule
from brainfed.federation.privacy.spending import spending_row
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.federation.schedule import Topology
from brainfed.federation.sharing import record_downloads, record_help
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.strategies.strategy import Strategy
from brainfed.federation.wire import Wire
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import IntArray, Outcome
from brainfed.samples.labelled_subjects import LabelledSubjects
from brainfed.samples.training_folds import require_training_subjects

POOLED = "pooled"
"""Name of the one trainer of a central training."""

Server = Callable[[tuple[int, ...], Mapping[str, Tensor]], Strategy]
"""Institutions and the tensors (F, ...) that they start from -> the server."""


@dataclass(frozen=True)
class PrivateTraining:
    """One method on one repeat.

    Attributes:
        network: fold, place of the institution -> its network with initial weights, float32 on the CPU.
        cohort: (M,) positions of each institution's subjects -> `PrivateCohort.of` with their arguments.
        inputs: subjects of the repeat.
        schedule: rounds, steps and privacy.
        run: settings of the machine.
        topology: `local`, `federated` (all parameters are shared) or `central`.
        shared_tensors: tensors that may leave an institution, name -> axes.
        axes: sizes of axes that the ledger knows.
        server: of a federated training.
        record_data: records what leaves the institutions before the first round: pooled data, or a shared graph.
    """

    network: Callable[[int, int], torch.nn.Module]
    cohort: Callable[[Sequence[IntArray]], PrivateCohort]
    inputs: LabelledSubjects
    schedule: PrivateSchedule
    run: Run
    topology: Topology
    shared_tensors: Mapping[str, tuple[str, ...]]
    axes: Mapping[str, int]
    server: Server = FedAvg
    record_data: Callable[[Ledger], None] | None = None

    @property
    def members(self) -> list[IntArray]:
        """(M,) positions of the subjects of each trainer: of an institution, or of all."""
        inputs = self.inputs
        if self.topology == "central":
            return [np.arange(len(inputs.subjects))]
        return [inputs.members(place) for place in range(len(inputs.institutions))]

    @property
    def names(self) -> tuple[str, ...]:
        """(M,) names of the trainers."""
        return (POOLED,) if self.topology == "central" else self.inputs.institutions

    def clients(self) -> PrivateClients:
        """The untrained institutions."""
        folds, count = range(self.inputs.folds), len(self.members)
        modules = [[self._network(fold, place) for fold in folds] for place in range(count)]
        shares = parameters_by_wire_name(modules[0][0]) if self.topology == "federated" else ()
        cohort = self.cohort(self.members)
        return PrivateClients(modules, cohort, self.schedule, self.inputs.streams, shares, self.names)

    def _network(self, fold: int, place: int) -> torch.nn.Module:
        return self.network(fold, place).to(self.run.device, getattr(torch, self.run.precision))


def train_private(training: PrivateTraining) -> Outcome:
    """Train all folds.

    The global model scores an institution without training subjects in a fold. Without a global model, the mean of the
    other institutions' last models does.

    Returns:
        See `Outcome` for the shapes; `privacy` has a row for each trainer and fold, `shares` those of a server that has
        them. The crossings are those of the first fold.

    Raises:
        UserError: a fold has no training subject, a loss is not finite, or the privacy settings do not fit the cohort.
    """
    inputs, schedule = training.inputs, training.schedule
    for fold in range(inputs.folds):
        require_training_subjects(inputs, fold)
    clients, members = training.clients(), training.members
    federated = training.topology == "federated"
    ledger = Ledger(training.shared_tensors, training.axes)
    if training.record_data and len(inputs.institutions) > 1:
        training.record_data(ledger)
    server: Strategy = Alone(clients.institutions)
    if federated:
        server = inputs.link.server(training.server(clients.institutions, clients.start()), schedule.rounds)
    wire = Wire(
        ledger,
        {place: len(own) for place, own in enumerate(members)},
        WeightNoise(0.0, inputs.streams, clients.cohort.folds),
    )
    run, pace = training.run, inputs.link.pace(Pace())
    federate(clients, server, wire, schedule.rounds, run.checkpoint, run.progress, pace)
    scores = of_subjects(inputs, members, clients.curves.probabilities, inputs.tested, range(inputs.folds))
    if training.topology == "local":
        _score_unseen(inputs, clients, members, scores)
    _record_help(clients, members, ledger, shared=federated)
    trained = of_subjects(inputs, members, clients.member_probabilities()[None], inputs.training, range(inputs.folds))[
        0
    ]
    parameters = sum(each.numel() for each in clients.modules[0][0].parameters())
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
        shares=getattr(server, "shares", None),
        member_scores=trained,
        privacy=tuple(spending_row(each, schedule) for each in clients.spendings()),
    )


def _score_unseen(
    inputs: LabelledSubjects, clients: PrivateClients, members: Sequence[IntArray], scores: NDArray[np.float64]
) -> None:
    """Write the mean probability of the others' last networks for an institution without training subjects."""
    trained = clients.samples.numpy() > 0
    for place, fold in np.argwhere(~trained).tolist():
        tested = np.flatnonzero(inputs.tested(fold)[members[place]])
        if not len(tested):
            continue
        own, samples = members[place][tested], torch.from_numpy(tested)
        others = np.flatnonzero(trained[:, fold]).tolist()
        scores[:, fold, own] = np.nan
        scores[-1, fold, own] = np.mean(
            [clients.probabilities(place, fold, samples, teacher) for teacher in others], axis=0
        )


def _record_help(clients: PrivateClients, members: Sequence[IntArray], ledger: Ledger, *, shared: bool) -> None:
    """Record the networks that score institutions without training subjects, in the first fold."""
    trained = clients.samples[:, 0].tolist()
    sizes = {place: len(own) for place, own in enumerate(members) if len(own)}
    helped = {place: size for place, size in sizes.items() if not trained[place]}
    named = parameters_by_wire_name(clients.modules[0][0])
    network = {name: (tuple(each.shape), each.element_size()) for name, each in named.items()}
    if shared:
        record_downloads(ledger, helped, network)
    else:
        record_help(ledger, {place: size for place, size in sizes.items() if trained[place]}, helped, network)
