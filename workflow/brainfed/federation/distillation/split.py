"""Public samples by what the models know of them (GAHFL Sec. II-C; FedGEMS Sec. 3.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.pool import LogitPool

Evaluation = Literal["step", "round"]
"""When the global model finds out which samples it predicts right: in every step, or once, as a round begins."""
Lifetime = Literal["training", "round"]
"""How long the pool remembers a sample that was right."""


@dataclass(frozen=True)
class Split:
    """The three parts of a batch; padding is in none.

    Attributes:
        right: (F, B) bool, the global model predicts the label: P_C.
        forgotten: (F, B) bool, it does not, and did before: P_IC*.
        never: (F, B) bool, it never did: P_IC-.
    """

    right: Tensor
    forgotten: Tensor
    never: Tensor


class SelfEvaluation:
    """The global model's evaluation of itself on the public samples, and the pool of the logits of right ones.

    - `step`: the prediction of the step itself, with its dropout, divides the batch, and its right logits enter the
      pool.
    - `round`: the model predicts all samples once, without dropout, before the epochs of a round. This divides them
      for all steps of the round, and the right logits of this one prediction enter the pool.

    With `pool="round"` the pool is emptied as a round begins: under `round` no sample was then right before.

    Args:
        pool: of all public samples.
        when: of the evaluation.
        lifetime: of the pool.
    """

    def __init__(self, pool: LogitPool, when: Evaluation = "step", lifetime: Lifetime = "training") -> None:
        self.pool, self.when, self.lifetime = pool, when, lifetime
        self._right: Tensor | None = None

    def begin(self, predict: Callable[[], Tensor], labels: Tensor, held: Tensor) -> None:
        """Begin a round.

        Args:
            predict: gives the (F, P, C) logits of the global model on all public samples.
            labels: (F, P) int64.
            held: (F, P) bool, False for padding.
        """
        if self.lifetime == "round":
            self.pool.clear()
        if self.when == "round":
            logits = predict()
            self._right = held & (logits.argmax(dim=-1) == labels)
            rows = torch.arange(labels.shape[1], device=labels.device).expand_as(labels)
            self.pool.update(rows, logits, self._right)

    def split(self, batch: PublicBatch) -> Split:
        """The parts of a batch."""
        if self.when == "step":
            right = batch.logits.argmax(dim=-1) == batch.labels
        else:
            assert self._right is not None, "no round has begun"
            right = self._right.gather(1, batch.rows)
        real, known = batch.weight > 0, self.pool.known(batch.rows)
        return Split(real & right, real & ~right & known, real & ~right & ~known)

    def remember(self, batch: PublicBatch, parts: Split) -> None:
        """Take up the right logits of a step, where each step is an evaluation."""
        if self.when == "step":
            self.pool.update(batch.rows, batch.logits, parts.right)


class Visits:
    """How often samples are trained on in a round, and how often institutions teach them.

    Args:
        taught: (F,) number of visits that an institution taught.
        all: (F,) number of visits.
    """

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a round."""
        self._taught: Tensor | None = None
        self._all: Tensor | None = None

    def count(self, taught: Tensor, weight: Tensor) -> None:
        """Count a step: (F, B) whether an institution teaches a sample, and the weight of each."""
        step, visits = (taught * weight).sum(dim=1), weight.sum(dim=1)
        self._taught = step if self._taught is None else self._taught + step
        self._all = visits if self._all is None else self._all + visits

    @property
    def share(self) -> Tensor:
        """(F,) taught visits of all visits since `begin`; NaN without visits."""
        assert self._taught is not None and self._all is not None, "no step since the round began"
        return self._taught / self._all


def right_teachers(batch: PublicBatch) -> Tensor:
    """(K, F, B) bool, institutions that took part and whose model predicts the label."""
    return (batch.teachers.argmax(dim=-1) == batch.labels) & batch.present[..., None]
