"""Private logistic regression of one fold from its formulas: one round, institution and subject after the other."""

import numpy as np

from brainfed.federation import private_normal
from brainfed.models import LogisticRegression
from reference.private_ridge import unit_row


def softmax(logits):
    """Probabilities of one subject's logits."""
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def probabilities_of(inputs, fold, settings, multiplier):
    """(n, C) probabilities of all subjects by the mean of the institutions' weights after the last round.

    Args:
        inputs: the subjects.
        fold: the fold.
        settings: full batches, one local epoch, plain gradient steps.
        multiplier: of the noise.
    """
    rows = np.array([settings.row_norm * unit_row(values, True) for values in inputs.features[0]])
    labels, classes = inputs.labels[fold], inputs.classes
    module = LogisticRegression(rows.shape[1], classes)
    module.start(inputs.streams, fold)
    weight, bias = module.weight_0.detach().double().numpy(), np.zeros(classes)
    for number in range(settings.rounds):
        replies = []
        for place in range(len(inputs.institutions)):
            group = [i for i in range(len(rows)) if inputs.institution[i] == place and labels[i] >= 0]
            if not group:
                continue
            total = [np.zeros_like(weight), np.zeros_like(bias)]
            for i in group:
                residual = softmax(rows[i] @ weight + bias) - np.eye(classes)[labels[i]]
                gradient = [np.outer(rows[i], residual), residual]
                norm = np.sqrt(sum(np.sum(part**2) for part in gradient))
                factor = min(1.0, settings.clip / norm) if multiplier else 1.0
                total = [old + factor * part for old, part in zip(total, gradient, strict=True)]
            if multiplier:
                total = [
                    old + multiplier * settings.clip * private_normal(
                        inputs.streams, old.shape, place, fold, number, 0, 0, name
                    ).numpy()
                    for old, name in zip(total, ("weight_0", "bias_0"), strict=True)
                ]  # fmt: skip
            step = settings.learning_rate / len(group)
            replies.append((weight - step * total[0], bias - step * total[1]))
        weight, bias = (np.mean(parts, axis=0) for parts in zip(*replies, strict=True))
    return np.array([softmax(row @ weight + bias) for row in rows])
