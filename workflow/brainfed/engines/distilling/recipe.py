"""How a recurrent network is trained on crops, and the parts that every training of one repeat has."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.engines.curves import Curves
from brainfed.engines.distilling.crops import Crops, IntArray
from brainfed.engines.distilling.network import FoldNetwork
from brainfed.engines.distilling.pool import Pool
from brainfed.engines.distilling.trainer import Trainer
from brainfed.models.recurrent import KINDS, Kind, RecurrentClassifier
from brainfed.runtime.jobs.run import Run
from brainfed.samples.series_inputs import SeriesInputs

SERVER = -1
"""Place of the server in keys of random streams."""


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
        epochs: local epochs a round.
        batch: samples a step.
        learning_rate: Adam's.
    """

    hidden: int
    dropout: float
    length: int
    crops: int
    drops_short: bool
    rounds: int
    epochs: int
    batch: int
    learning_rate: float


def precision_of(run: Run) -> torch.dtype:
    """Type of weights and signals."""
    return torch.float64 if run.precision == "float64" else torch.float32


@dataclass(frozen=True)
class Workplace:
    """What trainers of one repeat share.

    Attributes:
        inputs: subjects of the repeat.
        recipe: settings.
        run: settings of the machine.
    """

    inputs: SeriesInputs
    recipe: Recipe
    run: Run

    @cached_property
    def crops(self) -> Crops:
        """Of all subjects."""
        recipe = self.recipe
        return Crops.of(self.inputs, recipe.length, recipe.crops, self.run.device, self.precision)

    @property
    def precision(self) -> torch.dtype:
        """Of weights and signals."""
        return precision_of(self.run)

    @property
    def short(self) -> NDArray[np.bool_]:
        """(n,) whether a series is shorter than a crop."""
        return np.asarray(self.inputs.lengths < self.recipe.length)

    @property
    def counts(self) -> dict[str, int]:
        """Subjects whose scans are shorter than a crop, under the name of what happens to them."""
        return {"dropped_subjects" if self.recipe.drops_short else "wrapped_subjects": int(self.short.sum())}

    @property
    def axes(self) -> dict[str, int]:
        """Sizes of axes that the ledger knows."""
        hidden = self.recipe.hidden
        found = {"regions": self.inputs.regions, "classes": self.inputs.classes, "hidden": hidden}
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
        return FoldNetwork(kind, self._module(kind), self.inputs.folds, self.run.device, self.precision)

    def _module(self, kind: Kind) -> RecurrentClassifier:
        return RecurrentClassifier(kind, self.inputs.regions, self.inputs.classes, self.recipe.hidden)

    def trainer(self, name: str, place: int, kind: Kind, subjects: Sequence[IntArray]) -> Trainer:
        """An untrained network and the subjects (F,) that it learns from in each fold.

        Networks of one kind start from the same weights in every institution.
        """
        network, recipe = self.network(kind), self.recipe
        network.start(self.inputs.streams, kind)
        return Trainer(
            name,
            place,
            network,
            self.crops,
            self.pool([self.usable(own) for own in subjects]),
            recipe.batch,
            recipe.learning_rate,
            recipe.dropout,
            self.inputs.streams,
        )

    def usable(self, subjects: IntArray) -> IntArray:
        """Those of the subjects that may train."""
        return subjects[~self.short[subjects]] if self.recipe.drops_short else subjects

    def pool(self, subjects: Sequence[IntArray]) -> Pool:
        """All crops of subjects (F,) in each fold."""
        return Pool.of(self.crops, subjects, self.inputs.labels)

    def curves(self, members: Sequence[IntArray]) -> Curves:
        """Empty curves of trainers with these members."""
        most = max(map(len, members))
        labels = torch.zeros((len(members), self.inputs.folds, most))
        return Curves.of(self.recipe.rounds, labels, self.inputs.classes)

    def places(self, members: IntArray) -> list[NDArray[np.int64]]:
        """(F,) places among an institution's subjects of those that each fold tests."""
        return [np.flatnonzero(self.inputs.tested(fold)[members]) for fold in range(self.inputs.folds)]
