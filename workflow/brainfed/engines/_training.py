"""The driver of all engines: institutions train networks in rounds, and the result becomes an `Outcome`.

A kind of training (`Training`) says who its institutions are, what may cross, and which server joins them. All else is
here once: the wire and its noise, the rounds and their checkpoint, scores of institutions without training subjects and
what they receive for it, the outcome. Federated, local and central training differ in the topology alone: a server
between the rounds, no server, or one trainer that pools all subjects.

Linear models, whose outcome is of another form, share the rounds (`run_rounds`, `run_until_finished`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from torch import Tensor

from brainfed.engines._clients import NetworkClients, of_subjects
from brainfed.federation import (
    Clients,
    Defence,
    Federation,
    FederationSettings,
    Ledger,
    Link,
    Pace,
    RobustnessSettings,
    Topology,
    WeightNoise,
    Wire,
    attack_of,
    federate,
    record_downloads,
    record_help,
)
from brainfed.federation.strategies import Alone, EndingStrategy, FedAvg, Selection, Strategy
from brainfed.runtime import Float64, IntArray, Streams
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.samples import LabelledSubjects, Outcome, require_training_subjects

Progress = Callable[[int, int, str], None]
"""Called after a round with (done, total, what)."""

Server = Callable[[tuple[int, ...], Mapping[str, Tensor]], Strategy]
"""Institutions, and the shared tensors (F, ...) that they start from -> the strategy of a federated training."""


def averaging(schedule: FederationSettings, streams: Streams, defence: Defence | None = None) -> Server:
    """The mean of the institutions that a schedule draws, with its weights, or a defence in the mean's place."""

    def server(institutions: tuple[int, ...], start: Mapping[str, Tensor]) -> FedAvg:
        selection = Selection(len(institutions), schedule.fraction, streams)
        return FedAvg(institutions, start, schedule.weighting, selection, defence)

    return server


class Schedule(Protocol):
    """How many rounds and local epochs a training has."""

    @property
    def rounds(self) -> int:
        """Communication rounds, or points of the curves."""

    @property
    def local_epochs(self) -> int:
        """Epochs of an institution in a round."""


Subjects = TypeVar("Subjects", bound=LabelledSubjects)
Lengths = TypeVar("Lengths", bound=Schedule)


@dataclass(frozen=True)
class Training(ABC, Generic[Subjects, Lengths]):
    """One method on one repeat.

    Attributes:
        inputs: of the repeat.
        schedule: rounds, and how an institution trains in them.
        topology: a server joins the institutions, none does, or one trainer pools all subjects.
        shared_tensors: tensors that may leave an institution, name -> axes.
        server: makes the strategy of a federated training; None: the usual one of the kind.
        robustness: the attack on replies.
    """

    inputs: Subjects
    schedule: Lengths
    run: Run
    topology: Topology
    shared_tensors: Mapping[str, tuple[str, ...]]
    server: Server | None = field(default=None, kw_only=True)
    robustness: RobustnessSettings = field(default_factory=RobustnessSettings, kw_only=True)

    @abstractmethod
    def ledger(self) -> Ledger:
        """Declares what may cross, and has the rows of what crosses before the first round."""

    @abstractmethod
    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> NetworkClients:
        """The untrained institutions of these folds; the ledger checks sums that cross meanwhile."""

    @property
    def federated(self) -> bool:
        """Whether a server joins the institutions."""
        return self.topology == "federated"

    @property
    def pooled(self) -> bool:
        """Whether one trainer pools all subjects."""
        return self.topology == "central"

    @property
    def members(self) -> list[IntArray]:
        """(M,) positions of the subjects of each trainer."""
        if self.pooled:
            return [np.arange(len(self.inputs.subjects))]
        return [self.inputs.members(place) for place in range(len(self.inputs.institutions))]

    @property
    def sizes(self) -> dict[int, int]:
        """Trainer -> number of its subjects."""
        return {place: len(own) for place, own in enumerate(self.members)}

    @property
    def stacks(self) -> list[tuple[int, ...]]:
        """Groups of folds that are trained together, one group after the other."""
        return [tuple(range(self.inputs.folds))]

    @property
    def reports(self) -> bool:
        """Whether the server learns the numbers of training subjects."""
        return False

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers for the outcome beside those of parameters and rounds."""
        return {}

    @property
    def rows_by_fold(self) -> tuple[int, ...]:
        """Entries of the first axis that each fold has, of shared tensors that are padded; empty: all."""
        return ()

    @property
    def usual_server(self) -> Server:
        """The mean of all institutions with equal weights."""
        return FedAvg

    def noise(self, folds: tuple[int, ...]) -> WeightNoise:
        """The noise on weights that leave an institution; none."""
        return WeightNoise(0.0, self.inputs.streams, folds)

    def checkpoint(self, _folds: tuple[int, ...]) -> Checkpoint:
        """The state of these folds' training."""
        return self.run.checkpoint


AnyTraining = Training[Any, Any]


def train_networks(training: AnyTraining) -> Outcome:
    """Train all folds.

    The global model scores an institution without training subjects in a fold. Without a global model, the mean of the
    other institutions' last models does.

    Returns:
        See `Outcome` for the shapes; what a server or the institutions report of themselves (clusters, shares, taught
        samples, privacy, kept models) where they do. The crossings are those of the first fold.

    Raises:
        UserError: a fold has no training subject.
    """
    return train_by_round(training)[0]


def train_by_round(training: AnyTraining) -> tuple[Outcome, Float64]:
    """Train all folds; also return member scores (T, F, n, C) by round, T = 1 where an engine has the last alone."""
    for fold in range(training.inputs.folds):
        require_training_subjects(training.inputs, fold)
    ledger, stacks = training.ledger(), training.stacks
    outcomes, member_scores = [], []
    for index, folds in enumerate(stacks):
        book = ledger if folds[0] == 0 else ledger.blank()
        progress = training.run.progress if len(stacks) == 1 else _over_stacks(training.run.progress, index, stacks)
        # Two stacks at once would not fit: the institutions of one are gone before those of the next are made.
        outcome, by_round = _train_folds(training, folds, book, progress)
        outcomes.append(outcome)
        member_scores.append(by_round)
    return _joined(outcomes), np.concatenate(member_scores, axis=1) if len(stacks) > 1 else member_scores[0]


def _train_folds(
    training: AnyTraining, folds: tuple[int, ...], ledger: Ledger, progress: Progress
) -> tuple[Outcome, Float64]:
    inputs, schedule, members = training.inputs, training.schedule, training.members
    clients = training.clients(folds, ledger)
    start, trained = clients.start(), clients.samples[:, 0].tolist()
    attacked = Federation(len(clients.institutions), folds, inputs.streams, start, training.rows_by_fold)
    wire = Wire(
        ledger,
        training.sizes,
        training.noise(folds),
        {place: count for place, count in enumerate(trained) if count} if training.reports else None,
        attack=attack_of(training.robustness, attacked),
    )
    make: Server = (training.server or training.usual_server) if training.federated else lambda codes, _: Alone(codes)
    strategy = make(clients.institutions, start)
    server = run_rounds(clients, strategy, wire, schedule.rounds, inputs.link, training.checkpoint(folds), progress)
    scores = of_subjects(inputs, members, clients.curves.probabilities, inputs.tested, folds)
    member_scores = of_subjects(inputs, members, clients.member_probabilities(), inputs.training, folds)
    if not clients.global_model:
        _score_unseen(inputs, clients, members, folds, scores)
    _record_help(training, clients, ledger)
    counts = {"parameters": clients.parameters, "rounds": schedule.rounds, "local_epochs": schedule.local_epochs}
    return Outcome(
        scores[-1],
        "probability",
        scores,
        # Pooled institutions have one loss.
        np.repeat(clients.curves.losses, len(inputs.institutions) // len(members), axis=1),
        {**counts, **training.counts},
        ledger.rows(),
        clusters=getattr(server, "clusters", None),
        shares=getattr(server, "shares", None),
        taught=getattr(server, "taught", None),
        member_scores=member_scores[-1],
        privacy=tuple(clients.privacy_rows()),
        models=tuple(clients.kept_models() if training.run.keeps_models else ()),
    ), member_scores


def run_rounds(
    clients: Clients,
    strategy: Strategy,
    wire: Wire,
    rounds: int,
    link: Link,
    checkpoint: Checkpoint,
    progress: Progress,
) -> Strategy:
    """Train the clients in place and return the server: `strategy` itself where all institutions are here."""
    server = link.server(strategy, rounds)
    federate(clients, server, wire, rounds, checkpoint, progress, link.pace(Pace()))
    return server


def run_until_finished(
    clients: Clients,
    strategy: EndingStrategy,
    wire: Wire,
    most: int,
    link: Link,
    checkpoint: Checkpoint,
    progress: Progress,
) -> EndingStrategy:
    """Train as `run_rounds` does, until the server has converged or for `most` rounds."""
    server = link.ending_server(strategy, most)
    federate(clients, server, wire, most, checkpoint, progress, link.pace(Pace()), finished=server.finished)
    return server


def _score_unseen(
    inputs: LabelledSubjects,
    clients: NetworkClients,
    members: Sequence[IntArray],
    folds: tuple[int, ...],
    scores: Float64,
) -> None:
    """Write the mean probability of the others' last networks for institutions without training subjects."""
    trained = clients.samples.numpy() > 0
    for place, position in np.argwhere(~trained).tolist():
        tested = np.flatnonzero(inputs.tested(folds[position])[members[place]])
        if not len(tested):
            continue
        others = np.flatnonzero(trained[:, position]).tolist()
        own = members[place][tested]
        scores[:, position, own] = np.nan
        helping = [clients.foreign_probabilities(other, place, position, tested) for other in others]
        scores[-1, position, own] = np.mean(helping, axis=0)


def _record_help(training: AnyTraining, clients: NetworkClients, ledger: Ledger) -> None:
    """Record the networks that score institutions without training subjects, in the first of the folds."""
    sizes, trained = {place: size for place, size in training.sizes.items() if size}, clients.samples[:, 0].tolist()
    helped = {place: size for place, size in sizes.items() if not trained[place]}
    if clients.global_model:
        record_downloads(ledger, helped, clients.content(0))
        return
    for place, size in sizes.items():
        if trained[place]:
            record_help(ledger, {place: size}, helped, clients.content(place))


def _over_stacks(progress: Progress, index: int, stacks: Sequence[tuple[int, ...]]) -> Progress:
    """Progress of one stack as a part of all stacks, which take about as long as each other."""
    folds = stacks[index]

    def reported(done: int, total: int, what: str) -> None:
        reached, _, unit = what.rpartition(", ")
        named = f"folds {folds[0] + 1} to {folds[-1] + 1}" if len(folds) > 1 else f"fold {folds[0] + 1}"
        parts = ", ".join(part for part in (reached, named, unit) if part)
        progress(index * total + done, len(stacks) * total, parts)

    return reported


FOLD_AXIS = {
    "scores": 0,
    "round_scores": 1,
    "training_loss": 2,
    "member_scores": 0,
    "clusters": 1,
    "shares": 1,
    "taught": 1,
}
"""Position of the fold axis in the arrays of an `Outcome` of networks."""


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome from those of consecutive folds; counts and crossings are those of the first."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(outcome, name) for outcome in outcomes], axis=axis)
        for name, axis in FOLD_AXIS.items()
        if getattr(first, name) is not None
    }
    models = tuple(model for outcome in outcomes for model in outcome.models)
    return replace(first, **joined, models=models)
