"""The servers that GAHFL is compared with: FedGEMS (eq. 1 to 5) and Fed-ET (Sec. 3.2)."""

from collections.abc import Mapping
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.distillation._objective import (
    Evaluation,
    Lifetime,
    LogitPool,
    Objective,
    PublicBatch,
    SelfEvaluation,
    batch_mean,
    cross_entropy,
    entropy,
    kl,
    right_teachers,
)

# The server's objective of FedGEMS (Cheng et al. 2021, arXiv:2110.11027, eq. 1 to 5).

Ensemble = Literal["all", "right"]
"""Models in the ensemble of a sample: of all institutions that took part, or those among them that are right."""


def entropy_weights(teachers: Tensor, members: Tensor) -> Tensor:
    """(K, ...) softmax over the members of 1 / H(p_k), H the entropy of softmax(lg_k) (FedGEMS eq. 4).

    Teachers are logits (K, ..., C). Where no model is a member (K, ...) of the ensemble, all weights are 0.
    """
    smallest = torch.finfo(teachers.dtype).tiny
    confidence = 1 / entropy(teachers).clamp(min=smallest)
    masked = confidence.masked_fill(~members, torch.finfo(teachers.dtype).min)
    return torch.softmax(masked, dim=0) * members


class FedGEMSObjective(Objective):
    """Cross-entropy, self-distillation or distillation from the ensemble, by what the global model knows of a sample.

    - right now: cross-entropy; the logits replace those in the pool (eq. 1).
    - right before: epsilon cross-entropy + (1 - epsilon) KL(pool || lg) (eq. 2).
    - never right: xi cross-entropy + (1 - xi) KL(sum_k w_k lg_k || lg) (eq. 5), w of `entropy_weights`; without a
      model in the ensemble, xi cross-entropy.

    FedGEMS gives models that are wrong the weight 0: `ensemble="right"`. Its epsilon is 0.75 for both distillations.
    The pool has a row for each public sample of the fold that has most.
    """

    def __init__(
        self,
        folds: int,
        rows: int,
        classes: int,
        *,
        epsilon: float = 0.5,
        xi: float = 0.4,
        ensemble: Ensemble = "all",
        self_evaluation: Evaluation = "step",
        lifetime: Lifetime = "training",
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.epsilon, self.xi, self.ensemble = epsilon, xi, ensemble
        self.pool = LogitPool(folds, rows, classes, 0.0, device, dtype)
        self.evaluation = SelfEvaluation(self.pool, self_evaluation, lifetime)
        super().__init__(self.evaluation)

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) the total loss; updates the pool."""
        parts = self.evaluation.split(batch)
        labelled = cross_entropy(batch.logits, batch.labels)
        divergence = kl(self.pool.logits(batch.rows), batch.logits)
        recalled = self.epsilon * labelled + (1 - self.epsilon) * divergence
        present = batch.present[..., None].expand(batch.teachers.shape[:-1])
        members = present if self.ensemble == "all" else right_teachers(batch)
        teacher = (entropy_weights(batch.teachers, members)[..., None] * batch.teachers).sum(dim=0)
        taught = self.xi * labelled + (1 - self.xi) * (kl(teacher, batch.logits) * members.any(dim=0))
        self.evaluation.remember(batch, parts)
        self.visits.count(parts.never & members.any(dim=0), batch.weight)
        return batch_mean(parts.right * labelled + parts.forgotten * recalled + parts.never * taught, batch.weight)

    def state(self) -> dict[str, NDArray[Any]]:
        """The pool."""
        return self.pool.state()

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.pool.load(arrays)


# The server's objective of Fed-ET (Cho et al. 2022, IJCAI, Sec. 3.2), with the labels of the public samples.
#
# Fed-ET has no labels of its public samples: it trains on the class of the consensus. Here the labels are at hand, and
# the global model learns from them. It also learns from the consensus' probabilities, a term of our own: Fed-ET has
# none, and `consensus=0` leaves it out.


def variance_weighted(teachers: Tensor, members: Tensor) -> Tensor:
    """(..., C) mean of the members' logits (K, ..., C), each weighted by the variance of its logits over the classes.

    Members (K, ...) whose logits are all constant have equal weights; without a member the mean is 0.
    """
    variance = teachers.var(dim=-1, correction=0) * members
    weights = torch.where(variance.sum(dim=0) > 0, variance, members.to(variance.dtype))
    shares = weights / weights.sum(dim=0).clamp(min=torch.finfo(weights.dtype).tiny)
    return (shares[..., None] * teachers).sum(dim=0)


class FedETObjective(Objective):
    """Cross-entropy + consensus KL(consensus || lg) + diversity KL(dissent || lg).

    The consensus is the variance-weighted mean of the logits of all institutions that took part; the dissent is that
    of the institutions whose class differs from the consensus'. A divergence without a teacher is 0. In Fed-ET the
    weight of the consensus is 0, that of the dissent 0.05.
    """

    def __init__(self, *, consensus: float = 1.0, diversity: float = 0.05) -> None:
        super().__init__()
        self.consensus, self.diversity = consensus, diversity

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) the total loss."""
        present = batch.present[..., None].expand(batch.teachers.shape[:-1])
        consensus = variance_weighted(batch.teachers, present)
        dissenting = present & (batch.teachers.argmax(dim=-1) != consensus.argmax(dim=-1))
        dissent = variance_weighted(batch.teachers, dissenting)
        values = (
            cross_entropy(batch.logits, batch.labels)
            + self.consensus * present.any(dim=0) * kl(consensus, batch.logits)
            + self.diversity * dissenting.any(dim=0) * kl(dissent, batch.logits)
        )
        self.visits.count(
            (self.consensus > 0) * present.any(dim=0) | (self.diversity > 0) * dissenting.any(dim=0), batch.weight
        )
        return batch_mean(values, batch.weight)
