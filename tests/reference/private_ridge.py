"""Private ridge of one fold from its formulas: one round, institution and subject after the other, in float64."""

import numpy as np

from brainfed.federation import private_normal


def unit_row(values, centre):
    """A row of norm 1 minus its margin for rounding; zero without variation."""
    row = values.astype(np.float64)
    if centre:
        row = row - row.mean()
    norm = np.sqrt(sum(value * value for value in row))
    return row / (norm * (1 + 1e-6)) if norm > 0 else row


def clipped(vector, clip):
    """The vector, shortened to norm `clip`."""
    return vector * min(1.0, clip / max(np.linalg.norm(vector), 1e-300))


def targets_of(label, classes):
    """Targets of norm 1: +-1 of two classes; of more, one a class."""
    if classes == 2:
        return np.array([2.0 * label - 1])
    return np.array([1.0 if code == label else -1.0 for code in range(classes)]) / np.sqrt(classes)


def scores_of(inputs, fold, settings, multiplier):
    """(n, K) scores of all subjects after the last round."""
    rows = [unit_row(values, settings.centre == "subject") for values in inputs.features[0]]
    labels, classes = inputs.labels[fold], inputs.classes
    groups = [
        [i for i in range(len(rows)) if inputs.institution[i] == code and labels[i] >= 0]
        for code in range(len(inputs.institutions))
    ]
    first, weight = int(settings.balance == "classes"), np.ones(classes)
    if first:
        counts, senders = np.zeros(classes), 0
        for place, group in enumerate(groups):
            if group:
                senders += 1
                own = np.array([sum(labels[i] == code for i in group) for code in range(classes)], dtype=float)
                drawn = private_normal(inputs.streams, (classes,), place, fold, 0, "class-counts").numpy()
                counts += own + multiplier * drawn
        level = np.maximum(counts, 0) + max(multiplier * np.sqrt(senders), 1)
        weight = level.min() / level
    models = 1 if classes == 2 else classes
    model = np.zeros((models, len(rows[0])))
    subjects, senders = sum(map(len, groups)), sum(map(bool, groups))
    step = settings.learning_rate
    if multiplier:  # The noise of all rounds in a score has a standard deviation of 0.4 at most.
        step = min(step, 0.4 * subjects / (multiplier * settings.clip * np.sqrt(settings.rounds * senders)))
    for number in range(first, settings.rounds + first):
        total = np.zeros_like(model)
        for place, group in enumerate(groups):
            for i in group:
                gradient = -weight[labels[i]] * np.outer(targets_of(labels[i], classes) - model @ rows[i], rows[i])
                flat = clipped(gradient.ravel(), settings.clip) if multiplier else gradient.ravel()
                total += flat.reshape(model.shape)
            if group and multiplier:
                drawn = private_normal(inputs.streams, model.shape, place, fold, number, "gradient").numpy()
                total += multiplier * settings.clip * drawn
        model = model - step * total / subjects
    return np.array(rows) @ model.T
