"""Institutions that train recurrent networks of their own kinds, alone or under a global model (GAHFL Sec. II-B)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.curves import Curves
from brainfed.engines.distilling.crops import Crops
from brainfed.engines.distilling.network import FoldNetwork
from brainfed.engines.distilling.pool import Pool, Step
from brainfed.engines.distilling.trainer import Loss, Trainer, below
from brainfed.federation.clients import Arrays
from brainfed.federation.distillation.losses import local_loss
from brainfed.federation.message import Message

LOGITS = "logits"
"""Name on the wire of an institution's logits of the public samples."""


@dataclass(frozen=True)
class Teaching:
    """What joins institutions into a federation.

    Attributes:
        public: samples whose logits every institution sends.
        model: holds the server's last model; it also scores the tested subjects.
        alpha: weight of the divergence from the model's logits (eq. 3).
    """

    public: Pool
    model: FoldNetwork
    alpha: float


class RecurrentClients:
    """M institutions with one network a fold.

    Args:
        trainers: (M,) networks and training samples of each institution.
        crops: of all subjects.
        tested: (M,) crops of the subjects that each institution scores in each fold.
        epochs: local epochs a round.
        curves: (T, M, F, subjects, C) scores and losses; `places` maps a pool's subjects into it.
        places: (M)(F) place of each tested subject among the institution's subjects.
        teaching: of a federation; None: every institution trains alone and scores by its own network.
    """

    def __init__(
        self,
        trainers: Sequence[Trainer],
        crops: Crops,
        tested: Sequence[Pool],
        epochs: int,
        curves: Curves,
        places: Sequence[Sequence[NDArray[np.int64]]],
        teaching: Teaching | None = None,
    ) -> None:
        self.trainers, self.crops, self.tested, self.epochs = trainers, crops, tested, epochs
        self.curves, self.places, self.teaching = curves, places, teaching
        self.samples = torch.tensor([trainer.pool.counts for trainer in trainers], dtype=torch.int64)
        self.curves.probabilities[:] = np.nan

    @property
    def institutions(self) -> tuple[int, ...]:
        """Places in `trainers`."""
        return tuple(range(len(self.trainers)))

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Train the chosen institutions; in a federation they reply with logits of the public samples."""
        self.curves.losses[number] = np.nan
        replies = {}
        for place in chosen:
            trainer = self.trainers[place]
            self.curves.losses[number, place] = trainer.epochs(number, self.epochs, self._loss(number, trainer))
            replies[place] = Message({}, self.samples[place])
            if self.teaching is not None:
                public = self.teaching.public
                # Padding is a subject of the cohort: nothing of it may leave.
                logits = trainer.network.scores(self.crops, public) * public.held[..., None]
                replies[place] = Message({LOGITS: logits}, self.samples[place], rows=public.counts[0])
        return replies

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Hold the server's model, the same for all."""
        message = next(iter(messages.values()), None)
        if message is not None and self.teaching is not None:
            self.teaching.model.receive(message.tensors)

    def score(self, number: int) -> str:
        """Record the probabilities of every institution's tested subjects."""
        for place in self.institutions:
            self._record(number, place, self.trainers[place].network)
        losses = self.curves.losses[number]
        return f"loss {np.nanmean(losses):.4f}"

    def state(self, number: int) -> Arrays:
        """Curves, networks and optimisers."""
        arrays: Arrays = dict(self.curves.until(number))
        for place, trainer in enumerate(self.trainers):
            arrays |= {f"{place}/{name}": array for name, array in trainer.state().items()}
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state; the server sends its model again."""
        for name, curve in self.curves.until(number).items():
            curve[:] = arrays[name]
        for place, trainer in enumerate(self.trainers):
            trainer.load(below(f"{place}/", arrays))

    def _record(self, number: int, place: int, own: FoldNetwork) -> None:
        pool = self.tested[place]
        if not pool.size:
            return
        found = (own if self.teaching is None else self.teaching.model).probabilities(self.crops, pool)
        for fold, places in enumerate(self.places[place]):
            self.curves.probabilities[number, place, fold, places] = found[fold, : len(places)]

    def _loss(self, number: int, trainer: Trainer) -> Loss:
        labels, teaching = trainer.pool.labels, self.teaching
        known: Tensor | None = None
        if teaching is not None and number > 0 and trainer.pool.size:
            known = teaching.model.scores(self.crops, trainer.pool)
        alpha = 0.0 if teaching is None else teaching.alpha

        def loss(logits: Tensor, step: Step) -> Tensor:
            rows = step.rows
            teacher = None if known is None else known.gather(1, rows[..., None].expand(-1, -1, known.shape[-1]))
            return local_loss(logits, labels.gather(1, rows), step.weight.to(logits), teacher, alpha)

        return loss
