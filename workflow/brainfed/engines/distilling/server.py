"""The server of a distilled federation: it trains its own network on the public samples (GAHFL Sec. II-C, eq. 4)."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.distilling.clients import LOGITS
from brainfed.engines.distilling.pool import Step
from brainfed.engines.distilling.trainer import Trainer, below
from brainfed.federation.defences.elementwise import median, trimmed_mean
from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.objective import Objective
from brainfed.federation.message import Message
from brainfed.federation.robustness_settings import RobustnessSettings

TRAINER, OBJECTIVE, TAUGHT = "trainer/", "objective/", "taught"

Defence = Callable[[Tensor, Tensor], Tensor]
"""Logits (M, F, P, C) and participation (M, F) -> (F, P, C)."""


def logit_defence(settings: RobustnessSettings) -> Defence | None:
    """What joins the logits of institutions that are finite throughout; None without a defence."""
    rules: dict[str, Defence] = {
        "median": median,
        "trimmed_mean": lambda stack, present: trimmed_mean(stack, present, settings.trim),
    }
    rule = rules.get(settings.defence)
    if rule is None:
        return None
    return lambda stack, present: rule(*_finite(stack, present))


def _finite(stack: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    finite = stack.isfinite().flatten(2).all(dim=-1)
    return stack.where(finite[:, :, None, None], 0.0), present * finite


class DistillingServer:
    """One global model, which institutions teach by their logits.

    Args:
        institutions: codes.
        trainer: the global network on the public samples.
        rounds: of the training.
        epochs: global epochs a round.
        objective: the loss of a step.
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
        self.objective.begin(lambda: trainer.network.scores(trainer.crops, trainer.pool), labels, trainer.pool.held)

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
        """Copy a `state`."""
        self.taught[:] = arrays[TAUGHT]
        self.trainer.load(below(TRAINER, arrays))
        self.objective.load(below(OBJECTIVE, arrays))
