"""Batches of random public samples: F folds of different sizes, K institutions of which some are absent."""

import torch

from brainfed.federation.distillation import PublicBatch, initial_weights
from brainfed.runtime import Streams

FOLDS, ROWS, SAMPLES = 3, 12, 8
FEWER = (0, 3, 1)
"""Padded samples of each fold."""


def random_batches(number, classes=2, institutions=4, seed=0, skill=1.0):
    """Batches whose samples have lasting labels; `skill` is added to the logit of the label, of all models."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (FOLDS, ROWS), generator=random)
    return [_batch(labels, classes, institutions, random, skill) for _ in range(number)]


def every_label(batches):
    """(F, P) labels of the samples that are in the batches; 0 for all others."""
    labels = torch.zeros((FOLDS, ROWS), dtype=torch.int64)
    for batch in batches:
        labels.scatter_(1, batch.rows, batch.labels)
    return labels


def _batch(known, classes, institutions, random, skill):
    rows = torch.stack([torch.randperm(ROWS, generator=random)[:SAMPLES] for _ in range(FOLDS)])
    weight = torch.ones(FOLDS, SAMPLES, dtype=torch.float64)
    for fold, fewer in enumerate(FEWER):
        weight[fold, SAMPLES - fewer :] = 0
        rows[fold, SAMPLES - fewer :] = rows[fold, 0]
    labels = known.gather(1, rows)
    target = skill * torch.nn.functional.one_hot(labels, classes)
    present = torch.rand(institutions, FOLDS, generator=random) < 0.8
    present[:, 2] &= torch.rand((), generator=random) < 0.7
    return PublicBatch(
        logits=(noise((FOLDS, SAMPLES, classes), random) + target).requires_grad_(),
        labels=labels,
        weight=weight,
        rows=rows,
        teachers=noise((institutions, FOLDS, SAMPLES, classes), random) + target,
        present=present,
    )


def noise(shape, random):
    """Normal numbers in double precision."""
    return 1.5 * torch.randn(shape, generator=random, dtype=torch.float64)


def start(classes=2):
    """Initial weights in double precision; biases are not 0, so that they are seen to count."""
    random = torch.Generator().manual_seed(5)
    drawn = initial_weights(Streams(1), range(FOLDS), classes)
    return {
        name: tensor.double() if "weight" in name else 0.1 * noise(tensor.shape, random)
        for name, tensor in drawn.items()
    }


def loss_and_gradient(objective, batch):
    """(F,) the loss, and (F, B, C) the gradient of its sum with respect to the global model's logits."""
    batch.logits.grad = None
    loss = objective.loss(batch)
    loss.sum().backward()
    return loss.detach(), batch.logits.grad
