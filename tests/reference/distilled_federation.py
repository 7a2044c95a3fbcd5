"""GAHFL's Algorithm 1 in loops: one fold, institution, epoch and step after the other, with torch's own networks.

The draws are those of the engine; everything else is from the paper's text.
"""

from types import SimpleNamespace

import numpy as np
import torch

from brainfed.federation.distillation import initial_weights
from brainfed.models import RecurrentClassifier
from brainfed.samples import training_offset, window
from reference.distillation import GAHFL, FedET, FedGEMS, cross_entropy, kl


def crops_of(inputs, settings, subject):
    """(crops, T, R) of the subject at this position."""
    series, name = inputs.subject(subject), inputs.subjects[subject]
    offsets = [
        training_offset(inputs.streams, len(series), settings.length, "crop", name, crop)
        for crop in range(settings.crops)
    ]
    return torch.from_numpy(np.stack([window(series, settings.length, offset) for offset in offsets])).double()


class Learner:
    """A network of one kind, what it trains on, and the key of its draws."""

    def __init__(self, inputs, settings, kind, fold, place, subjects):
        self.inputs, self.settings, self.fold, self.place = inputs, settings, fold, place
        self.network = RecurrentClassifier(kind, inputs.regions, inputs.classes, settings.hidden)
        self.network.start(inputs.streams, kind, fold)
        self.network.double()
        self.adam = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        self.signals = torch.cat([crops_of(inputs, settings, subject) for subject in subjects])
        self.labels = torch.tensor(
            [int(inputs.labels[fold, subject]) for subject in subjects for _ in range(settings.crops)]
        )

    def epochs(self, number, count, loss_of):
        streams, size = self.inputs.streams, len(self.labels)
        for epoch in range(count):
            order = streams.numpy("batches", self.place, number, epoch, self.fold).permutation(size)
            seed = streams.key("dropout", self.place, number, epoch, self.fold)
            drawn = torch.rand(size, self.network.pooled, generator=torch.Generator().manual_seed(seed))
            keep = (drawn >= self.settings.dropout) / (1 - self.settings.dropout)
            for first in range(0, size, self.settings.batch):
                rows = torch.from_numpy(order[first : first + self.settings.batch])
                kept = keep[first : first + len(rows)].double()
                self.adam.zero_grad()
                loss_of(self.network(self.signals[rows], kept), rows).backward()
                self.adam.step()

    @torch.no_grad()
    def logits(self, signals):
        return self.network(signals)


def scores(inputs, settings, name, with_taught=False):
    """(F, n, C) probabilities of the tested subjects by the last global network; NaN elsewhere.

    With `with_taught` also the (T, F) share of the visits of public samples that institutions taught.
    """
    taught = np.full((settings.rounds, inputs.folds), np.nan)
    found = np.full((inputs.folds, len(inputs.subjects), inputs.classes), np.nan)
    for fold in range(inputs.folds):
        network = train_fold(inputs, settings, name, fold, taught[:, fold])
        for subject in np.flatnonzero(inputs.tested(fold)):
            logits = network(crops_of(inputs, settings, subject)).detach()
            found[fold, subject] = torch.softmax(logits, dim=1).mean(dim=0).numpy()
    return (found, taught) if with_taught else found


def train_fold(inputs, settings, name, fold, shares):
    places = range(len(inputs.institutions))
    kinds = settings.kinds(len(places), inputs.streams.repeat)
    private = [inputs.private_training(fold, place) for place in places]
    clients = [
        Learner(inputs, settings, kinds[place], fold, place, private[place]) for place in places if len(private[place])
    ]
    server = Learner(inputs, settings, settings.model, fold, -1, inputs.public_training(fold))
    objective = objective_of(inputs, settings, name, fold)
    for number in range(settings.rounds):
        for client in clients:
            known = server.logits(client.signals) if number else None

            def local(logits, rows, client=client, known=known):
                terms = [cross_entropy(each, client.labels[row]) for each, row in zip(logits, rows, strict=True)]
                if known is not None:
                    pairs = zip(logits, rows, strict=True)
                    terms += [settings.alpha * kl(known[row], each) for each, row in pairs]
                return sum(terms) / len(rows)

            client.epochs(number, settings.local_epochs, local)
        teachers = torch.stack([client.logits(server.signals) for client in clients])

        def taught(logits, rows, teachers=teachers):
            batch = SimpleNamespace(
                logits=logits[None],
                labels=server.labels[rows][None],
                weight=torch.ones(1, len(rows)),
                rows=rows[None],
                teachers=teachers[:, None, rows],
                present=torch.ones(len(teachers), 1, dtype=torch.bool),
            )
            return objective.loss(batch)[0]

        if hasattr(objective, "pool"):
            objective.pool.begin(0, server.logits(server.signals), server.labels)
        server.epochs(number, settings.global_epochs, taught)
        if hasattr(objective, "pool"):
            shares[number] = objective.pool.taught[0] / objective.pool.visits[0]
    return server.network


def objective_of(inputs, settings, name, fold):
    if name == "fedet":
        return FedET(settings.consensus, settings.diversity)
    if name == "fedgems":
        return FedGEMS(settings.ensemble, settings.epsilon, settings.epsilon, settings.self_evaluation, settings.pool)
    start = initial_weights(inputs.streams, [fold], inputs.classes)
    return GAHFL(
        {key: tensor.double() for key, tensor in start.items()},
        settings.without,
        settings.gcna_training,
        settings.beta,
        settings.gamma,
        settings.epsilon,
        settings.xi,
        settings.momentum,
        settings.self_evaluation,
        settings.pool,
    )
