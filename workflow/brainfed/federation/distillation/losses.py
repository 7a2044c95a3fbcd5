"""Losses of single samples from logits (..., C), and their mean over the samples of a batch."""

import torch
from torch import Tensor


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """(...) -log of the labelled class' probability; GAHFL's binary cross-entropy where there are two classes.

    Args:
        logits: (..., C).
        labels: (...) int64.
    """
    return -torch.log_softmax(logits, dim=-1).gather(-1, labels[..., None])[..., 0]


def kl(teacher: Tensor, student: Tensor) -> Tensor:
    """(...) KL(softmax(teacher) || softmax(student)) at temperature 1; no gradient reaches the teacher.

    Args:
        teacher: (..., C) logits.
        student: (..., C) logits.
    """
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

    Args:
        logits: (F, B, C) of the institution's model.
        labels: (F, B) int64.
        weight: (F, B) 1 for a sample, 0 for padding.
        global_logits: (F, B, C) of the global model; None in the first round, before there is one.
        alpha: weight of the divergence.
    """
    values = cross_entropy(logits, labels)
    if global_logits is not None:
        values = values + alpha * kl(global_logits, logits)
    return batch_mean(values, weight)
