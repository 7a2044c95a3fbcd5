"""Recurrent networks alone, on pooled or public series, or in a distilled federation (GAHFL Algorithm 1)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch

from brainfed.engines import Server, Training, series_content, sizes_of
from brainfed.engines.distilling._clients import DistillingServer, RecurrentClients, Teaching, logit_defence
from brainfed.engines.distilling._network import Crops, FoldNetwork, Pool, Trainer
from brainfed.federation import Ledger, record_downloads, record_pools, record_uploads
from brainfed.federation.distillation import Objective
from brainfed.models import KINDS, Kind, RecurrentClassifier
from brainfed.runtime import BoolArray, IntArray, UserError
from brainfed.samples import PublicSeriesInputs, SeriesInputs

SERVER = -1
"""Place of the server in keys of random streams."""
ONE = "the network"
"""Name of the trainer where a single network is trained."""


@dataclass(frozen=True)
class Recipe:
    """Settings of networks, crops and steps.

    Attributes:
        hidden: width of the recurrent state.
        dropout: share of the pooled vector that a step drops.
        length: time points of a crop.
        crops: crops a subject.
        drops_short: whether a scan shorter than a crop trains nothing; otherwise it starts again at its end.
        rounds: communication rounds, or points of the curves.
        local_epochs: of an institution in a round.
        batch: samples a step.
        learning_rate: Adam's.
    """

    hidden: int
    dropout: float
    length: int
    crops: int
    drops_short: bool
    rounds: int
    local_epochs: int
    batch: int
    learning_rate: float


Series = TypeVar("Series", bound=SeriesInputs)


@dataclass(frozen=True, kw_only=True)
class RecurrentTraining(Training[Series, Recipe]):
    """Recurrent networks on crops of one repeat.

    Attributes:
        kinds: (M,) of the trainers' networks.
    """

    kinds: Sequence[Kind]

    @cached_property
    def crops(self) -> Crops:
        """The crops of all subjects."""
        recipe, dtype = self.schedule, getattr(torch, self.run.precision)
        return Crops.of(self.inputs, recipe.length, recipe.crops, self.run.device, dtype)

    @property
    def counts(self) -> dict[str, int]:
        """Subjects whose scans are shorter than a crop, under the name of what happens to them."""
        return {"dropped_subjects" if self.schedule.drops_short else "wrapped_subjects": int(self._short.sum())}

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of axes that the ledger knows."""
        axes = {"regions": self.inputs.regions, "classes": self.inputs.classes, "hidden": self.schedule.hidden}
        for kind in KINDS:
            module = self._module(kind)
            axes[f"{kind}-gates"] = len(module.get_parameter("recurrent.weight_ih_l0"))
            axes[f"{kind}-pooled"] = module.pooled
            axes |= {f"connected-{n}": each.out_features for n, each in enumerate([*module.connected][:-1])}
        return axes

    def network(self, kind: Kind) -> FoldNetwork:
        """A network of this kind for every fold; its weights are zero."""
        dtype = getattr(torch, self.run.precision)
        return FoldNetwork(kind, self._module(kind), self.inputs.folds, self.run.device, dtype)

    def trainer(self, name: str, place: int, kind: Kind, subjects: Sequence[IntArray]) -> Trainer:
        """An untrained network and the subjects (F,) that it learns from in each fold.

        Networks of one kind start from the same weights in every institution.
        """
        network, recipe = self.network(kind), self.schedule
        network.start(self.inputs.streams, kind)
        return Trainer(
            name,
            place,
            network,
            self.crops,
            Pool.of(self.crops, [self.usable(own) for own in subjects], self.inputs.labels),
            recipe.batch,
            recipe.learning_rate,
            recipe.dropout,
            self.inputs.streams,
        )

    def trainers_of(self, subjects: Sequence[Sequence[IntArray]]) -> list[Trainer]:
        """(M,) trainers of subjects (M)(F)."""
        names = (ONE,) if self.pooled else self.inputs.institutions
        each = zip(names, self.kinds, subjects, strict=True)
        return [self.trainer(name, place, kind, own) for place, (name, kind, own) in enumerate(each)]

    def usable(self, subjects: IntArray) -> IntArray:
        """Those of the subjects that may train."""
        return subjects[~self._short[subjects]] if self.schedule.drops_short else subjects

    def require_scans(self, trainers: Sequence[Trainer], what: str = "") -> None:
        """Refuse a fold in which nobody trains.

        Raises:
            UserError: all scans are short and dropped.
        """
        for fold in range(self.inputs.folds):
            if not any(trainer.pool.counts[fold] for trainer in trainers):
                raise UserError(
                    f"Fold {fold}: expected {what}training scans of {self.schedule.length} time points or more, found "
                    "none; set `short: wrap`, or a smaller `length`."
                )

    @property
    def _short(self) -> BoolArray:
        """(n,) whether a series is shorter than a crop."""
        return np.asarray(self.inputs.lengths < self.schedule.length)

    def _module(self, kind: Kind) -> RecurrentClassifier:
        return RecurrentClassifier(kind, self.inputs.regions, self.inputs.classes, self.schedule.hidden)


@dataclass(frozen=True, kw_only=True)
class SoloTraining(RecurrentTraining[SeriesInputs]):
    """Networks that exchange nothing.

    Attributes:
        trained: (M)(F) positions of the subjects that each trains on.
        public: whether a pooled network trains on public subjects, the only ones that leave their institution.
    """

    trained: Sequence[Sequence[IntArray]]
    public: bool = False

    def ledger(self) -> Ledger:
        """Pooled series cross before the first round."""
        inputs, ledger = self.inputs, Ledger(self.shared_tensors, self.axes)
        if self.pooled and len(inputs.institutions) > 1:
            sizes = sizes_of(inputs.institution)
            sent = self.usable(self.trained[0][0]) if self.public else np.arange(len(inputs.subjects))
            prefix, owner = "public-" if self.public else "", inputs.institution[sent]
            contents = {code: series_content(inputs, sent[owner == code], prefix) for code in np.unique(owner).tolist()}
            record_pools(ledger, sizes, contents)
            if self.public:
                # The centre has no private subjects: each institution scores its own.
                record_downloads(ledger, sizes, self.network(self.kinds[0]).content())
        return ledger

    def clients(self, _folds: tuple[int, ...], _ledger: Ledger) -> RecurrentClients:
        """The clients, one for each trainer.

        Raises:
            UserError: all scans of a fold are short and dropped.
        """
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
    def rows_by_fold(self) -> tuple[int, ...]:
        """Public samples of each fold, which logits are padded to."""
        return self.head.pool.counts

    @property
    def usual_server(self) -> Server:
        """The server that distils, under the defence of the settings."""
        head, rounds, epochs = self.head, self.schedule.rounds, self.global_epochs
        objective, defence = self.objective(head.pool.size), logit_defence(self.robustness)
        return lambda institutions, _: DistillingServer(institutions, head, rounds, epochs, objective, defence)

    def ledger(self) -> Ledger:
        """Institutions send their public subjects first; those that train receive the series of the others'."""
        inputs, public = self.inputs, self.usable(self.inputs.public_training(0))
        ledger = Ledger(self.shared_tensors, {"public-samples": self.head.pool.counts[0], **self.axes})
        owner = inputs.institution[public]
        for place, size in sizes_of(inputs.institution).items():
            own, others = public[owner == place], public[owner != place]
            if len(own):
                record_uploads(ledger, {place: size}, series_content(inputs, own, "public-"))
            if len(others) and self.trainers[place].pool.counts[0]:
                series = series_content(inputs, others, "public-")["public-series"]
                record_downloads(ledger, {place: size}, {"public-series": series})
        return ledger

    def clients(self, _folds: tuple[int, ...], _ledger: Ledger) -> RecurrentClients:
        """The institutions under the global model.

        Raises:
            UserError: all scans of a fold, or all public ones, are short and dropped.
        """
        self.require_scans(self.trainers)
        self.require_scans([self.head], "public ")
        teaching = Teaching(self.head.pool, self.network(self.kind), self.alpha)
        return RecurrentClients(self.trainers, self.crops, self.inputs, self.members, self.schedule, teaching)
