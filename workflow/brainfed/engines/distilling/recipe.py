"""How a recurrent network is trained on crops, and the parts that every training of one repeat has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.engines.distilling.crops import Crops
from brainfed.engines.distilling.network import FoldNetwork
from brainfed.engines.distilling.pool import Pool
from brainfed.engines.distilling.trainer import Trainer
from brainfed.engines.training import Training
from brainfed.models.recurrent import KINDS, Kind, RecurrentClassifier
from brainfed.runtime.errors import UserError
from brainfed.runtime.jobs.run import Run
from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.series_inputs import SeriesInputs

SERVER = -1
"""Place of the server in keys of random streams."""
ONE = "the network"
"""Name of a trainer that no institution has."""


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


def precision_of(run: Run) -> torch.dtype:
    """Type of weights and signals."""
    return torch.float64 if run.precision == "float64" else torch.float32


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
        """Of all subjects."""
        recipe = self.schedule
        return Crops.of(self.inputs, recipe.length, recipe.crops, self.run.device, precision_of(self.run))

    @property
    def counts(self) -> dict[str, int]:
        """Subjects whose scans are shorter than a crop, under the name of what happens to them."""
        return {"dropped_subjects" if self.schedule.drops_short else "wrapped_subjects": int(self._short.sum())}

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of axes that the ledger knows."""
        found = {"regions": self.inputs.regions, "classes": self.inputs.classes, "hidden": self.schedule.hidden}
        for kind in KINDS:
            module = self._module(kind)
            found |= {
                f"{kind}-gates": len(module.get_parameter("recurrent.weight_ih_l0")),
                f"{kind}-pooled": module.pooled,
            }
            found |= {f"connected-{n}": each.out_features for n, each in enumerate([*module.connected][:-1])}
        return found

    def network(self, kind: Kind) -> FoldNetwork:
        """A network of this kind for every fold; its weights are zero."""
        return FoldNetwork(kind, self._module(kind), self.inputs.folds, self.run.device, precision_of(self.run))

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
        names = (ONE,) if self.topology == "central" else self.inputs.institutions
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
    def _short(self) -> NDArray[np.bool_]:
        """(n,) whether a series is shorter than a crop."""
        return np.asarray(self.inputs.lengths < self.schedule.length)

    def _module(self, kind: Kind) -> RecurrentClassifier:
        return RecurrentClassifier(kind, self.inputs.regions, self.inputs.classes, self.schedule.hidden)
