"""Small cohorts, networks and trainings for the tests of this room."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from brainfed.engines.private import PrivateClients, PrivateCohort
from brainfed.federation import Ledger, PrivateSchedule, WeightNoise, Wire, federate
from brainfed.federation.strategies import Alone, FedAvg
from brainfed.models import MLP, LogisticRegression
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Checkpoint

STREAMS, FEATURES, TIMES, ROUNDS = Streams(7), 6, 12, 3
SIZES, FOLDS = (9, 14, 5), (0, 1)
PRIVACY = {"privacy": "classical", "epsilon": 4.0, "delta": 1e-3, "clip": 0.3}


class Convolution(torch.nn.Module):
    """A small network of windows (B, T, R) with layers that need `torch.func`: a raw parameter, GroupNorm."""

    def __init__(self, classes=2):
        super().__init__()
        self.importance = torch.nn.Parameter(torch.ones(FEATURES))
        self.temporal = torch.nn.Conv1d(FEATURES, 4, 3)
        self.norm = torch.nn.GroupNorm(2, 4)
        self.readout = torch.nn.Linear(4, classes)

    def forward(self, windows, scale):
        hidden = self.temporal((windows * self.importance).mT * scale[:, None, None])
        return self.readout(torch.relu(self.norm(hidden)).mean(dim=2))


def schedule(**options):
    given = {"rounds": ROUNDS, "local_epochs": 2, "batch": 4, "learning_rate": 0.3} | options
    return PrivateSchedule(**given)


@dataclass(frozen=True)
class Data:
    """Made-up subjects: features (n, d) or series (n, T, R) of every institution, and labels (M, F, n)."""

    values: list
    labels: torch.Tensor
    sizes: tuple
    classes: int
    windows: int = 0

    @property
    def cohort(self):
        return PrivateCohort(
            self.arguments,
            self.labels,
            self.sizes,
            FOLDS,
            self.classes,
            self.windows_of if self.windows else None,
            block=3,
        )

    def count(self, subject, moment):
        """A different number of windows a subject, and one in every other training step."""
        return 1 + subject % self.windows if moment is None or moment[2] % 2 else 1

    def windows_of(self, place, position, samples, moment):
        return torch.tensor([self.count(int(each), moment) for each in samples])

    def rows(self, place, subject, moment):
        """Arguments of each window, with a first axis of one, float64."""
        value = self.values[place][subject]
        if not self.windows:
            return [(value[None],)]
        first = 0 if moment is None else sum(moment) % 3
        parts = [value[first + index : first + index + 6] for index in range(self.count(subject, moment))]
        return [(part[None], torch.tensor([1.0 + 0.1 * index]).double()) for index, part in enumerate(parts)]

    def arguments(self, place, position, samples, moment):
        rows = [row for each in samples for row in self.rows(place, int(each), moment)]
        return tuple(torch.cat(each) for each in zip(*rows, strict=True))


def made_up(windows=0, classes=2, sizes=SIZES, seed=3):
    """Labels: each fold hides every second subject's; the last institution trains nothing in fold 0."""
    generator = np.random.default_rng(seed)
    shape = (TIMES, FEATURES) if windows else (FEATURES,)
    values = [torch.from_numpy(generator.normal(size=(count, *shape))) for count in sizes]
    labels = torch.full((len(sizes), len(FOLDS), max(sizes)), -1)
    for place, count in enumerate(sizes):
        truth = torch.arange(count) % classes
        for position in range(len(FOLDS)):
            labels[place, position, :count] = torch.where(torch.arange(count) // 2 % 2 == position, -1, truth)
    if len(sizes) > 2:
        labels[len(sizes) - 1, 0] = -1
    return Data(values, labels, sizes, classes, windows)


def network(kind, classes=2):
    if kind == "convolution":
        torch.manual_seed(0)
        return Convolution(classes).double()
    made = LogisticRegression(FEATURES, classes) if kind == "logistic" else MLP(FEATURES, (5, 4), classes)
    made.start(STREAMS, 0)
    return made.double()


def networks(data, kind):
    """(M)(F), all with the same initial weights."""
    return [[network(kind, data.classes) for _ in FOLDS] for _ in data.sizes]


def clients_of(data, kind, settings, *, federated=True, streams=STREAMS, dtype=torch.float64):
    modules = [[each.to(dtype) for each in own] for own in networks(data, kind)]
    shares = [name.replace("_", "-") for name, _ in modules[0][0].named_parameters()] if federated else ()
    return PrivateClients(deepcopy(modules), data.cohort, settings, streams, shares)


def train(clients, checkpoint=None, progress=lambda *_: None):
    first = clients.modules[0][0]
    declared = {
        name.replace("_", "-"): tuple(f"axis-{length}" for length in each.shape)
        for name, each in first.named_parameters()
    }
    wire = Wire(
        Ledger(declared), dict.fromkeys(clients.institutions, 1000), WeightNoise(0.0, STREAMS, clients.cohort.folds)
    )
    server = FedAvg(clients.institutions, clients.start()) if clients.shares else Alone(clients.institutions)
    federate(clients, server, wire, clients.schedule.rounds, checkpoint or Checkpoint(None, ""), progress)
    return clients
