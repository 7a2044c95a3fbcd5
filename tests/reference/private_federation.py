"""Federated training in private steps as Abadi et al. (2016, Algorithm 1) write it: one subject after the other.

Plain autograd, one window a forward pass, torch's optimisers; no batches, no torch.func. Slow; the engine must give the
same numbers.
"""

from copy import deepcopy

import numpy as np
import torch
from torch.nn.functional import cross_entropy

OPTIMISERS = {
    "sgd": lambda weights, settings: torch.optim.SGD(
        weights, lr=settings.learning_rate, momentum=settings.momentum, weight_decay=settings.weight_decay
    ),
    "adam": lambda weights, settings: torch.optim.Adam(
        weights, lr=settings.learning_rate, weight_decay=settings.weight_decay
    ),
}


def train_by_loops(starts, windows, labels, settings, streams, multipliers, shared):
    """Train all institutions of all folds.

    Args:
        starts: (M)(F) networks with initial weights, float64.
        windows: institution, subject, moment or None -> list of tuples of arguments of one row.
        labels: (M)(F) labels of an institution's subjects, -1 where hidden.
        settings: schedule and privacy.
        streams: random streams.
        multipliers: (M, F) noise multipliers.
        shared: whether the networks are averaged after every round.

    Returns:
        (M)(F) networks, losses (T, M, F), probabilities (T)(M)(F) of all subjects.
    """
    networks = deepcopy(starts)
    places, folds = range(len(networks)), range(len(networks[0]))
    losses = np.full((settings.rounds, len(places), len(folds)), np.nan)
    optimisers = {}
    scores = []
    for number in range(settings.rounds):
        for place in places:
            for fold in folds:
                network = networks[place][fold]
                if number == 0 or (settings.optimiser_state == "reset" and shared):
                    optimisers[place, fold] = OPTIMISERS[settings.optimiser](network.parameters(), settings)
                training = np.flatnonzero(labels[place][fold] >= 0)
                seen = []
                for epoch in range(settings.local_epochs):
                    for step in range(steps_of(len(training), settings.batch)):
                        key = (place, fold, number, epoch, step)
                        drawn = streams.numpy("poisson", *key).random(len(labels[place][fold]))
                        size = min(settings.batch or len(training), len(training))
                        batch = [each for each in training if drawn[each] < size / len(training)]
                        total = [torch.zeros_like(each) for each in network.parameters()]
                        batch_losses = []
                        for subject in batch:
                            rows = windows(place, subject, key[2:])
                            label = torch.tensor([labels[place][fold][subject]])
                            loss = sum(cross_entropy(network(*row), label) for row in rows) / len(rows)
                            gradient = torch.autograd.grad(loss, list(network.parameters()))
                            factor = 1.0
                            if settings.privacy != "none":
                                norm = sum(float(each.square().sum()) for each in gradient) ** 0.5
                                factor = min(1.0, settings.clip / norm)
                            for place_of, each in enumerate(gradient):
                                total[place_of] += factor * each
                            batch_losses.append(float(loss.detach()))
                        if settings.privacy != "none":
                            for each, name in zip(total, dict(network.named_parameters()), strict=True):
                                noise = streams.numpy("privacy-noise", *key, name).standard_normal(each.shape)
                                each += torch.from_numpy(noise) * multipliers[place][fold] * settings.clip
                        for parameter, each in zip(network.parameters(), total, strict=True):
                            parameter.grad = each / size
                        optimisers[place, fold].step()
                        if batch_losses:
                            seen.append(np.mean(batch_losses))
                losses[number, place, fold] = np.mean(seen) if seen else np.nan
        if shared:
            average(networks, labels)
        scores.append(
            [
                [probabilities(networks[place][fold], windows, place, len(labels[place][fold])) for fold in folds]
                for place in places
            ]
        )
    return networks, losses, scores


def steps_of(subjects, batch):
    """Steps of one epoch: subjects / batch, rounded up."""
    return int(np.ceil(subjects / batch)) if batch else min(subjects, 1)


@torch.no_grad()
def average(networks, labels):
    """Give all institutions the mean of those that train in a fold."""
    for fold in range(len(networks[0])):
        trained = [place for place in range(len(networks)) if (labels[place][fold] >= 0).any()]
        every = [list(networks[place][fold].parameters()) for place in range(len(networks))]
        for index in range(len(every[0])):
            mean = sum(every[place][index].clone() for place in trained) / len(trained)
            for own in every:
                own[index].copy_(mean)


@torch.no_grad()
def probabilities(network, windows, place, subjects):
    """(n, C) mean over the windows of each subject."""
    found = []
    for subject in range(subjects):
        rows = [torch.softmax(network(*row)[0], dim=0) for row in windows(place, subject, None)]
        found.append(torch.stack(rows).mean(dim=0).numpy())
    return np.array(found)
