"""What a server with public samples trains on: their batches, losses, the pool, self-evaluation."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

Evaluation = Literal["step", "round"]
"""When the global model finds out which samples it predicts right: in every step, or once, as a round begins."""
Lifetime = Literal["training", "round"]
"""How long the pool remembers a sample that was right."""


@dataclass(frozen=True)
class PublicBatch:
    """Public samples, what the global model says of them and what the institutions' models say.

    A fold with fewer samples than the largest is padded. Padded samples have weight 0, any finite logits, any class
    and any valid position; they have no effect.

    Attributes:
        logits: (F, B, C) of the global model, with gradient.
        labels: (F, B) int64 in {0, ..., C - 1}.
        weight: (F, B) 1 for a sample, 0 for padding.
        rows: (F, B) int64 position of each sample among the fold's P public samples. No sample is in a batch twice.
        teachers: (K, F, B, C) logits of the institutions' models, detached; of an absent institution any finite value.
        present: (K, F) bool, institutions that took part in the fold.
    """

    logits: Tensor
    labels: Tensor
    weight: Tensor
    rows: Tensor
    teachers: Tensor
    present: Tensor


# Losses of single samples from logits (..., C), and their mean over the samples of a batch.


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """(...) -log of the probability of `labels` (...), int64, under logits (..., C).

    It is GAHFL's binary cross-entropy where there are two classes.
    """
    return -torch.log_softmax(logits, dim=-1).gather(-1, labels[..., None])[..., 0]


def kl(teacher: Tensor, student: Tensor) -> Tensor:
    """(...) KL(softmax(teacher) || softmax(student)) of logits (..., C); no gradient reaches the teacher."""
    known = torch.log_softmax(teacher.detach(), dim=-1)
    return (known.exp() * (known - torch.log_softmax(student, dim=-1))).sum(dim=-1)


def entropy(logits: Tensor) -> Tensor:
    """(...) entropy in nats of softmax(logits), logits (..., C)."""
    logarithm = torch.log_softmax(logits, dim=-1)
    return -(logarithm.exp() * logarithm).sum(dim=-1)


def batch_mean(values: Tensor, weight: Tensor) -> Tensor:
    """(...) mean of `values` (..., B) over the samples, whose `weight` (..., B) is 1; 0 where there is none."""
    return (values * weight).sum(dim=-1) / weight.sum(dim=-1).clamp(min=1)


def local_loss(logits: Tensor, labels: Tensor, weight: Tensor, global_logits: Tensor | None, alpha: float) -> Tensor:
    """(F,) loss of an institution's model on its own samples, cross-entropy + alpha KL(global || local) (GAHFL eq. 3).

    Logits are (F, B, C), labels (F, B) and weights (F, B), 0 for padding. In the first round there is no global model.
    """
    values = cross_entropy(logits, labels)
    if global_logits is not None:
        values = values + alpha * kl(global_logits, logits)
    return batch_mean(values, weight)


# The server's memory of the logits of samples that it predicted right (GAHFL Sec. II-C, P*).


class LogitPool:
    """A running mean of the right logits of every public sample.

    E_0 = lg, E_t = phi E_{t-1} + (1 - phi) lg, where t counts the batches in which the sample was predicted right, and
    phi is the momentum. With phi = 0 the pool holds the last right logits, as FedGEMS' global pool does. It has a row
    for each of the P public samples of the fold that has most.
    """

    def __init__(
        self,
        folds: int,
        rows: int,
        classes: int,
        momentum: float,
        device: torch.device | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.rows, self.momentum = rows, momentum
        # The last row takes what `update` leaves out.
        self._logits = torch.zeros(folds, rows + 1, classes, device=device, dtype=dtype)
        self._known = torch.zeros(folds, rows + 1, device=device, dtype=torch.bool)

    def logits(self, rows: Tensor) -> Tensor:
        """(F, B, C) logits of the samples at `rows` (F, B); 0 for a sample that is not known."""
        return self._logits.gather(1, rows[..., None].expand(-1, -1, self._logits.shape[-1]))

    def known(self, rows: Tensor) -> Tensor:
        """(F, B) bool, whether the samples at `rows` (F, B) were ever predicted right."""
        return self._known.gather(1, rows)

    def clear(self) -> None:
        """Forget all samples."""
        self._known.zero_()

    @torch.no_grad()
    def update(self, rows: Tensor, logits: Tensor, right: Tensor) -> None:
        """Take up the logits (F, B, C) of the samples at `rows` (F, B) that are right (F, B) now."""
        old = self.logits(rows)
        mean = self.momentum * old + (1 - self.momentum) * logits
        new = torch.where(self.known(rows)[..., None], mean, logits).to(old.dtype)
        places = torch.where(right, rows, self.rows)
        self._logits.scatter_(1, places[..., None].expand_as(new), new)
        self._known.scatter_(1, places, True)

    def state(self) -> dict[str, NDArray[Any]]:
        """Logits (F, P, C) and known (F, P)."""
        kept = {"logits": self._logits, "known": self._known}
        return {name: tensor[:, : self.rows].contiguous().cpu().numpy() for name, tensor in kept.items()}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self._logits[:, : self.rows] = torch.from_numpy(arrays["logits"]).to(self._logits.device)
        self._known[:, : self.rows] = torch.from_numpy(arrays["known"]).to(self._known.device)


# Public samples by what the models know of them (GAHFL Sec. II-C; FedGEMS Sec. 3.3).


@dataclass(frozen=True)
class Split:
    """The three parts (F, B) of a batch; padding is in none.

    The global model predicts the label now (`right`, P_C), did so before (`forgotten`, P_IC*) or never (P_IC-).
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

    With `lifetime="round"` the pool is emptied as a round begins: under `round` no sample was then right before.
    """

    def __init__(self, pool: LogitPool, when: Evaluation = "step", lifetime: Lifetime = "training") -> None:
        self.pool, self.when, self.lifetime = pool, when, lifetime
        self._right: Tensor | None = None

    def begin(self, predict: Callable[[], Tensor], labels: Tensor, real: Tensor) -> None:
        """Begin a round.

        `predict` gives the (F, P, C) logits of the global model on all public samples; labels (F, P) are int64, and
        `real` (F, P) is False for padding.
        """
        if self.lifetime == "round":
            self.pool.clear()
        if self.when == "round":
            logits = predict()
            self._right = real & (logits.argmax(dim=-1) == labels)
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
    """How often samples are trained on in a round, and how often institutions teach them."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin a round."""
        self._taught = self._all = torch.zeros(())  # A step makes them (F,).

    def count(self, taught: Tensor, weight: Tensor) -> None:
        """Count a step: (F, B) whether an institution teaches a sample, and the weight of each."""
        self._taught = self._taught + (taught * weight).sum(dim=1)
        self._all = self._all + weight.sum(dim=1)

    @property
    def share(self) -> Tensor:
        """(F,) taught visits of all visits since `begin`; NaN without visits."""
        assert self._all.ndim, "no step since the round began"
        return self._taught / self._all


def right_teachers(batch: PublicBatch) -> Tensor:
    """(K, F, B) bool, institutions that took part and whose model predicts the label."""
    return (batch.teachers.argmax(dim=-1) == batch.labels) & batch.present[..., None]


class Objective:
    """A loss of the global model that may remember earlier batches and train a network of its own."""

    def __init__(self, evaluation: SelfEvaluation | None = None) -> None:
        self._evaluation, self.visits = evaluation, Visits()

    def begin(self, predict: Callable[[], Tensor], labels: Tensor, real: Tensor) -> None:
        """Begin a round, as `SelfEvaluation.begin`."""
        self.visits.begin()
        if self._evaluation is not None:
            self._evaluation.begin(predict, labels, real)

    def loss(self, batch: PublicBatch) -> Tensor:
        """(F,) loss of the global model of every fold; 0 in a fold without samples.

        Every term is summed over its samples and divided by the number of samples of the fold's batch. The call also
        updates what the objective remembers, and its own network.
        """
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """What the objective remembers and the weights of its network."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
