"""Both ends of a distilled federation (GAHFL Sec. II): institutions with networks of their own kinds, and the server.

Institutions without a global model train alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import Curves, NetworkClients, Schedule
from brainfed.engines.distilling._network import Crops, FoldNetwork, Loss, Pool, Step, Trainer
from brainfed.federation import Arrays, Content, Message, RobustnessSettings, median, trimmed_mean
from brainfed.federation.distillation import Objective, PublicBatch, local_loss
from brainfed.runtime import BoolArray, Float64, IntArray, below
from brainfed.samples import SeriesInputs

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


class RecurrentClients(NetworkClients):
    """M institutions with one network a fold.

    Args:
        trainers: (M,) networks and training samples of each institution.
        members: (M,) positions of the subjects that each institution scores.
        teaching: of a federation; None: every institution trains alone and scores by its own network.
    """

    def __init__(
        self,
        trainers: Sequence[Trainer],
        crops: Crops,
        inputs: SeriesInputs,
        members: Sequence[IntArray],
        schedule: Schedule,
        teaching: Teaching | None = None,
    ) -> None:
        self.trainers, self.crops, self.inputs, self.members = trainers, crops, inputs, members
        self.epochs, self.teaching, self.global_model = schedule.local_epochs, teaching, teaching is not None
        self.tested = [self._chosen(own, inputs.tested) for own in members]
        networks = [self._scoring(place) for place in range(len(trainers))]
        self.parameters = max(sum(each[0].numel() for each in network.parameters.values()) for network in networks)
        labels = torch.zeros((len(members), inputs.folds, max(map(len, members))))
        self.curves = Curves.of(schedule.rounds, labels, inputs.classes)
        self.samples = torch.tensor([trainer.pool.counts for trainer in trainers], dtype=torch.int64)
        self.curves.probabilities[:] = np.nan

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
                logits = trainer.network.scores(self.crops, public) * public.real[..., None]
                replies[place] = Message({LOGITS: logits}, self.samples[place], rows=public.counts[0])
        return replies

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the server's model, which is the same for all institutions."""
        message = next(iter(messages.values()), None)
        if message is not None and self.teaching is not None:
            self.teaching.model.receive(message.tensors)

    def score(self, number: int) -> str:
        """Record the probabilities of every institution's tested subjects."""
        self._score(self.curves.probabilities[number], self.tested)
        return self.curves.words(number)

    def state(self, number: int) -> Arrays:
        """Curves, networks and optimisers."""
        arrays: Arrays = dict(self.curves.until(number))
        for place, trainer in enumerate(self.trainers):
            arrays |= {f"{place}/{name}": array for name, array in trainer.state().items()}
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state; the server sends its model again."""
        self.curves.restore(number, arrays)
        for place, trainer in enumerate(self.trainers):
            trainer.load(below(f"{place}/", arrays))

    def content(self, place: int) -> Content:
        """The network that scores the institution's subjects."""
        return self._scoring(place).content()

    def member_probabilities(self) -> Float64:
        """(1, M, F, n, C) by the network that scores the institution's tested subjects."""
        scores = np.full_like(self.curves.probabilities[:1], np.nan)
        self._score(scores[0], [self._chosen(own, self.inputs.training) for own in self.members])
        return scores

    def foreign_probabilities(self, teacher: int, place: int, position: int, tested: IntArray) -> Float64:
        """(b, C) probabilities of these subjects by the network of `teacher`."""
        subjects = [self.members[place][tested]] * self.inputs.folds
        pool = Pool.of(self.crops, subjects, self.inputs.labels)
        return np.asarray(self.trainers[teacher].network.probabilities(self.crops, pool)[position])

    def _scoring(self, place: int) -> FoldNetwork:
        """The network that scores an institution's subjects: the global one, or its own."""
        return self.trainers[place].network if self.teaching is None else self.teaching.model

    def _chosen(self, own: IntArray, chosen: Callable[[int], BoolArray]) -> tuple[list[IntArray], Pool]:
        """(F,) places among an institution's subjects of those that are chosen in each fold, and all their crops."""
        places = [np.flatnonzero(chosen(fold)[own]) for fold in range(self.inputs.folds)]
        return places, Pool.of(self.crops, [own[each] for each in places], self.inputs.labels)

    def _score(self, scores: Float64, chosen: Sequence[tuple[list[IntArray], Pool]]) -> None:
        """Write probabilities (M, F, n, C) of the chosen subjects of each institution."""
        for place, (places, pool) in enumerate(chosen):
            if pool.size:
                by_fold = self._scoring(place).probabilities(self.crops, pool)
                for fold, each in enumerate(places):
                    scores[place, fold, each] = by_fold[fold, : len(each)]

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


# The server of a distilled federation: it trains its own network on the public samples (GAHFL Sec. II-C, eq. 4).

TRAINER, OBJECTIVE, TAUGHT = "trainer/", "objective/", "taught"

Defence = Callable[[Tensor, Tensor], Tensor]
"""Logits (M, F, P, C) and participation (M, F) -> (F, P, C)."""


def logit_defence(settings: RobustnessSettings) -> Defence | None:
    """The rule that joins logits, without institutions that sent a non-finite number; None without a defence."""
    if settings.defence not in ("median", "trimmed_mean"):
        return None

    def joined(stack: Tensor, present: Tensor) -> Tensor:
        finite = stack.isfinite().flatten(2).all(dim=-1)
        stack, present = stack.where(finite[:, :, None, None], 0.0), present * finite
        return median(stack, present) if settings.defence == "median" else trimmed_mean(stack, present, settings.trim)

    return joined


class DistillingServer:
    """One global model, which institutions teach by their logits.

    Args:
        epochs: global epochs a round.
        defence: joins the institutions' logits into those of one teacher; None: all teach.
    """

    def __init__(
        self,
        institutions: tuple[int, ...],
        trainer: Trainer,
        rounds: int,
        epochs: int,
        objective: Objective,
        defence: Defence | None = None,
    ) -> None:
        self.institutions, self.trainer, self.epochs = institutions, trainer, epochs
        self.objective, self.defence = objective, defence
        # (T, F) share of the visits of public samples that institutions taught, in every round.
        self.taught = np.full((rounds, trainer.network.folds), np.nan)

    def choose(self, _number: int) -> tuple[int, ...]:
        """All institutions."""
        return self.institutions

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Train the global network for the round's epochs."""
        ordered = [replies[code] for code in sorted(replies)]
        teachers = torch.stack([reply.tensors[LOGITS] for reply in ordered])
        present = torch.stack([reply.samples > 0 for reply in ordered]).to(teachers.device)
        if self.defence is not None:
            teachers, present = self.defence(teachers, present)[None], present.any(dim=0, keepdim=True)
        trainer, labels = self.trainer, self.trainer.pool.labels
        self.objective.begin(lambda: trainer.network.scores(trainer.crops, trainer.pool), labels, trainer.pool.real)

        def loss(logits: Tensor, step: Step) -> Tensor:
            rows = step.rows
            wide = rows[None, :, :, None].expand(len(teachers), -1, -1, logits.shape[-1])
            return self.objective.loss(
                PublicBatch(
                    logits, labels.gather(1, rows), step.weight.to(logits), rows, teachers.gather(2, wide), present
                )
            )

        trainer.epochs(number, self.epochs, loss)
        self.taught[number] = self.objective.visits.share.cpu().numpy()

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The global model to all institutions; nothing before the first round."""
        if number == 0:
            return {}
        return dict.fromkeys(self.institutions, Message(self.trainer.network.shared()))

    def state(self) -> dict[str, NDArray[Any]]:
        """Taught shares, network, optimiser, and what the objective remembers."""
        arrays = {TAUGHT: self.taught}
        arrays |= {f"{TRAINER}{name}": array for name, array in self.trainer.state().items()}
        return arrays | {f"{OBJECTIVE}{name}": array for name, array in self.objective.state().items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.taught[:] = arrays[TAUGHT]
        self.trainer.load(below(TRAINER, arrays))
        self.objective.load(below(OBJECTIVE, arrays))
