"""Both engines on the same graphs, for the tests of this room."""

from copy import deepcopy
from dataclasses import replace

import torch

from brainfed.engines.graphs import GraphClients
from brainfed.federation import FederationSettings, Ledger, WeightNoise, Wire, federate
from brainfed.federation.strategies import Alone, FedAvg
from brainfed.models import GIN, SHARED
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Checkpoint
from reference.module_clients import ModuleClients
from reference.plain_graphs import plain_cohort

STREAMS, ROUNDS = Streams(5), 3
SCHEDULE = {
    "rounds": ROUNDS, "local_epochs": 2, "learning_rate": 0.01, "weight_decay": 5e-4, "noise": 0.0,
    "optimiser_state": "keep", "weighting": "subjects",
}  # fmt: skip


def settings_of(**options):
    return FederationSettings(**(SCHEDULE | options))


def networks(cohort, rate=0.5, dtype=torch.float64, **options):
    """(M)(F) networks with the features of their institution's graphs."""
    found = []
    for place, own in enumerate(cohort.graphs):
        modules = [GIN(each.nodes.shape[1], cohort.classes, hidden=8, dropout=rate, **options) for each in own]
        for module, fold in zip(modules, cohort.folds, strict=True):
            module.start(STREAMS, fold, place)
        found.append([module.to(dtype) for module in modules])
    return found


def shared(modules):
    return [name for name, _ in modules[0][0].named_parameters() if name.startswith(SHARED)]


def fast(modules, cohort, settings, shares, **options):
    return GraphClients(modules, cohort, settings, STREAMS, shares, **options)


def plain(modules, cohort, settings, shares, **options):
    held = deepcopy(modules)
    return ModuleClients(held, plain_cohort(cohort, held, STREAMS), settings, STREAMS, shares, **options)


class Recorded(FedAvg):
    """FedAvg of the shared layers that keeps the norms of the gradients, (T)(M)(F)."""

    norms = ()

    def aggregate(self, number, replies):
        found = [replies[place].tensors.get("gradient-norm", torch.empty(0)).tolist() for place in sorted(replies)]
        self.norms = (*self.norms, found)
        weights = {
            place: replace(reply, tensors={name: reply.tensors[name] for name in self.tensors})
            for place, reply in replies.items()
        }
        super().aggregate(number, weights)


def train(clients, shares, checkpoint=None, progress=lambda *_: None):
    """The server, after all rounds."""
    axes = dict.fromkeys(shares, ("hidden-0", "hidden-1")) | {
        name: ("hidden-0",) for name in shares if name.endswith("bias")
    }
    sizes = dict(enumerate(clients.samples[:, 0].tolist()))
    people = dict.fromkeys(clients.institutions, 1000)
    wire = Wire(
        Ledger(axes | {"gradient-norm": (), "training-subjects": ()}),
        people,
        WeightNoise(0.0, STREAMS, clients.cohort.folds),
        sizes,
    )
    server = Recorded(clients.institutions, clients.start(), "subjects") if shares else Alone(clients.institutions)
    federate(clients, server, wire, clients.settings.rounds, checkpoint or Checkpoint(None, ""), progress)
    return server
