"""The server's objective of GAHFL (eq. 4 to 7)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.gcna import GCNA, Training
from brainfed.federation.distillation.losses import batch_mean, cross_entropy, kl
from brainfed.federation.distillation.pool import LogitPool
from brainfed.federation.distillation.split import Evaluation, Lifetime, SelfEvaluation, Split, Visits, right_teachers

Drop = Literal["none", "bce", "sd", "wd", "teachers"]
"""The term that an ablation of GAHFL's Table IV leaves out; `teachers`: of L_wd the divergence alone."""


class GAHFLObjective:
    """L_bce + beta L_sd + gamma L_wd (eq. 4).

    - right now: cross-entropy; the logits enter the pool.
    - right before: epsilon cross-entropy + (1 - epsilon) KL(E || lg) with the pool's logits E (eq. 5).
    - never right: xi cross-entropy + (1 - xi) sum_k A'_k KL(lg_k || lg) (eq. 7); without a right model of an
      institution, xi cross-entropy.

    Without `bce`, samples that are right now are not trained on, and enter the pool. Without `sd`, samples that were
    right before count as never right. Without `wd`, samples that were never right contribute nothing; without
    `teachers`, xi cross-entropy.

    Args:
        rows: number of public samples P of the fold that has most.
        classes: number of classes C.
        start: (F, ...) initial weights of the network (`gcna.initial_weights`), whose device and dtype the pool has.
        beta: weight of the self-distillation.
        gamma: weight of the distillation from the institutions.
        epsilon: share of the labels in eq. 5.
        xi: share of the labels in eq. 7.
        momentum: phi of the pool.
        drop: the term to leave out.
        gcna_training: what the network learns from.
        self_evaluation: when the global model finds out which samples it predicts right.
        lifetime: of the pool.
    """

    def __init__(
        self,
        rows: int,
        classes: int,
        start: Mapping[str, Tensor],
        *,
        beta: float = 1.0,
        gamma: float = 10.0,
        epsilon: float = 0.5,
        xi: float = 0.4,
        momentum: float = 0.8,
        drop: Drop = "none",
        gcna_training: Training = "labels",
        self_evaluation: Evaluation = "step",
        lifetime: Lifetime = "training",
    ) -> None:
        self.beta, self.gamma, self.epsilon, self.xi, self.drop = beta, gamma, epsilon, xi, drop
        first = start["weight_0"]
        self.pool = LogitPool(len(first), rows, classes, momentum, first.device, first.dtype)
        self.evaluation, self.visits = SelfEvaluation(self.pool, self_evaluation, lifetime), Visits()
        self.gcna = GCNA(start, gcna_training)

    def begin(self, predict: Callable[[], Tensor], labels: Tensor, held: Tensor) -> None:
        """Begin a round, as `SelfEvaluation.begin`."""
        self.visits.begin()
        self.evaluation.begin(predict, labels, held)

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) the total loss; updates the pool and the network."""
        parts = self._split(batch)
        labelled = cross_entropy(batch.logits, batch.labels)
        values = torch.zeros_like(labelled)
        if self.drop != "bce":
            values = values + parts.right * labelled
        if self.drop != "sd":
            divergence = kl(self.pool.logits(batch.rows), batch.logits)
            recalled = self.epsilon * labelled + (1 - self.epsilon) * divergence
            values = values + self.beta * parts.forgotten * recalled
        right = right_teachers(batch) & parts.never & (self.drop not in ("wd", "teachers"))
        if self.drop != "wd":
            taught = self.xi * labelled
            if self.drop != "teachers":
                taught = taught + (1 - self.xi) * self._weighted_divergence(batch, right)
            values = values + self.gamma * parts.never * taught
        self.evaluation.remember(batch, parts)
        self.visits.count(right.any(dim=0), batch.weight)
        return batch_mean(values, batch.weight)

    def state(self) -> dict[str, NDArray[Any]]:
        """The pool and the network."""
        pool, gcna = self.pool.state(), self.gcna.state()
        return {f"pool/{name}": array for name, array in pool.items()} | {
            f"gcna/{name}": array for name, array in gcna.items()
        }

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy a state."""
        for name, part in (("pool/", self.pool), ("gcna/", self.gcna)):
            part.load({key.removeprefix(name): array for key, array in arrays.items() if key.startswith(name)})

    def _split(self, batch: PublicBatch) -> Split:
        parts = self.evaluation.split(batch)
        if self.drop != "sd":
            return parts
        return Split(parts.right, torch.zeros_like(parts.forgotten), parts.forgotten | parts.never)

    def _weighted_divergence(self, batch: PublicBatch, right: Tensor) -> Tensor:
        """(F, B) sum_k A'_k KL(lg_k || lg) over models that are right on samples never right; trains the network."""
        weights = self.gcna.weights(batch.logits, batch.teachers, right)
        divergence = kl(batch.teachers, batch.logits)
        self.gcna.learn(weights, batch, divergence, right)
        return (weights.detach() * divergence).sum(dim=0)
