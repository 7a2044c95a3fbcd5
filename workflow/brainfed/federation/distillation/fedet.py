"""The server's objective of Fed-ET (Cho et al. 2022, IJCAI, Sec. 3.2), with the labels of the public samples.

Fed-ET has no labels of its public samples: it trains on the class of the consensus. Here the labels are at hand, and
the global model learns from them. It also learns from the consensus' probabilities, a term of our own: Fed-ET has none,
and `consensus=0` leaves it out.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.distillation.batch import PublicBatch
from brainfed.federation.distillation.losses import batch_mean, cross_entropy, kl
from brainfed.federation.distillation.split import Visits


def variance_weighted(teachers: Tensor, members: Tensor) -> Tensor:
    """(..., C) mean of the members' logits, each weighted by the variance of its logits over the classes.

    Members whose logits are all constant have equal weights; without a member the mean is 0.

    Args:
        teachers: (K, ..., C) logits.
        members: (K, ...) bool.
    """
    variance = teachers.var(dim=-1, correction=0) * members
    weights = torch.where(variance.sum(dim=0) > 0, variance, members.to(variance.dtype))
    shares = weights / weights.sum(dim=0).clamp(min=torch.finfo(weights.dtype).tiny)
    return (shares[..., None] * teachers).sum(dim=0)


class FedETObjective:
    """Cross-entropy + consensus KL(consensus || lg) + diversity KL(dissent || lg).

    The consensus is the variance-weighted mean of the logits of all institutions that took part; the dissent is that
    of the institutions whose class differs from the consensus'. A divergence without a teacher is 0.

    Args:
        consensus: weight of the divergence from the consensus; 0 in Fed-ET.
        diversity: weight of the divergence from the dissent; 0.05 in Fed-ET.
    """

    def __init__(self, *, consensus: float = 1.0, diversity: float = 0.05) -> None:
        self.consensus, self.diversity, self.visits = consensus, diversity, Visits()

    def begin(self, _predict: Callable[[], Tensor], _labels: Tensor, _held: Tensor) -> None:
        """Begin a round; no sample is evaluated."""
        self.visits.begin()

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

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: no batch depends on an earlier one."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing to copy."""
