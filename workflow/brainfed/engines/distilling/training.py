"""Recurrent networks of one repeat, alone or in a distilled federation (GAHFL Algorithm 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from brainfed.engines.distilling.clients import RecurrentClients, Teaching
from brainfed.engines.distilling.public_crossings import record_exchange
from brainfed.engines.distilling.recipe import SERVER, RecurrentTraining
from brainfed.engines.distilling.server import DistillingServer, logit_defence
from brainfed.engines.distilling.trainer import Trainer
from brainfed.engines.training import Server
from brainfed.federation.distillation.objective import Objective
from brainfed.federation.ledger import Ledger
from brainfed.models.recurrent import Kind
from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.public_series_inputs import PublicSeriesInputs
from brainfed.samples.series_inputs import SeriesInputs


@dataclass(frozen=True, kw_only=True)
class SoloTraining(RecurrentTraining[SeriesInputs]):
    """Networks that exchange nothing.

    Attributes:
        trained: (M)(F) positions of the subjects that each trains on.
        record_data: records what leaves the institutions before the first round.
    """

    trained: Sequence[Sequence[IntArray]]
    record_data: Callable[[Ledger], None] | None = None

    def ledger(self) -> Ledger:
        """Has the rows of `record_data`."""
        ledger = Ledger(self.shared_tensors, self.axes)
        if self.record_data:
            self.record_data(ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> RecurrentClients:
        """The trainers.

        Raises:
            UserError: all scans of a fold are short and dropped.
        """
        del folds, ledger
        trainers = self.trainers_of(self.trained)
        self.require_scans(trainers)
        return RecurrentClients(trainers, self.crops, self.inputs, self.members, self.schedule)


@dataclass(frozen=True, kw_only=True)
class DistilledTraining(RecurrentTraining[PublicSeriesInputs]):
    """Institutions and the server train in turn (GAHFL Algorithm 1); the global model scores all tested subjects.

    Attributes:
        kind: of the global network.
        global_epochs: of the server in a round.
        alpha: weight of the global model in the local loss (eq. 3).
        objective: number of public samples -> the server's loss.
    """

    kind: Kind
    global_epochs: int
    alpha: float
    objective: Callable[[int], Objective]

    @cached_property
    def trainers(self) -> list[Trainer]:
        """(M,) institutions, on their private subjects."""
        inputs = self.inputs
        places, folds = range(len(inputs.institutions)), range(inputs.folds)
        return self.trainers_of([[inputs.private_training(fold, place) for fold in folds] for place in places])

    @cached_property
    def head(self) -> Trainer:
        """The server, on the public subjects."""
        shown = [self.inputs.public_training(fold) for fold in range(self.inputs.folds)]
        return self.trainer("the server", SERVER, self.kind, shown)

    @property
    def rows(self) -> tuple[int, ...]:
        """Public samples of each fold, which logits are padded to."""
        return self.head.pool.counts

    @property
    def usual_server(self) -> Server:
        """The server that distils, under the defence of the settings."""
        head, rounds, epochs = self.head, self.schedule.rounds, self.global_epochs
        objective, defence = self.objective(head.pool.size), logit_defence(self.robustness)
        return lambda institutions, _: DistillingServer(institutions, head, rounds, epochs, objective, defence)

    def ledger(self) -> Ledger:
        """Public subjects cross before the first round."""
        samples = self.head.pool.counts[0]
        ledger = Ledger(self.shared_tensors, {"public-samples": samples, **self.axes})
        trains = {place for place, trainer in enumerate(self.trainers) if trainer.pool.counts[0]}
        record_exchange(self.inputs, self.usable(self.inputs.public_training(0)), trains, ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> RecurrentClients:
        """The institutions under the global model.

        Raises:
            UserError: all scans of a fold, or all public ones, are short and dropped.
        """
        del folds, ledger
        self.require_scans(self.trainers)
        self.require_scans([self.head], "public ")
        teaching = Teaching(self.head.pool, self.network(self.kind), self.alpha)
        return RecurrentClients(self.trainers, self.crops, self.inputs, self.members, self.schedule, teaching)
