"""Institutions of two kinds, each with its own optimum, for federations that find the kinds."""

import torch

from brainfed.federation import Ledger, Message, WeightNoise, Wire, federate
from brainfed.federation.strategies import GCFL, GradientNorms, UpdateCosine
from brainfed.federation.strategies._gcfl import GRADIENT_NORM
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Checkpoint

KINDS = (0, 1, 1, 0, 0, 1, 0, 1)
ABSENT = 3
"""Has no training graphs in the second fold."""
ROUNDS = 26
AXES = {"body": ("width",), GRADIENT_NORM: (), "training-subjects": ()}


class Clients:
    """A round halves the distance of the shared `body` (M, F, 2) to an own optimum.

    The optima of the kinds lie at (1, 0) and (-1, 0), those of one kind 0.01 apart; the loss of kind 1 is three times
    as steep.
    """

    def __init__(self, kinds=KINDS):
        self.institutions = tuple(range(len(kinds)))
        kind = torch.tensor(kinds)
        offset = 0.01 * torch.tensor([(-1.0) ** (place // 2) for place in self.institutions])
        self.optimum = torch.stack([1.0 - 2 * kind, offset], dim=1)[:, None]
        self.steepness = 1.0 + 2 * kind[:, None]
        self.samples = torch.full((len(kinds), 2), 5)
        self.samples[ABSENT, 1] = 0
        self.body, self.heads = torch.zeros(len(kinds), 2, 2), torch.zeros(len(kinds))

    def fit(self, _number, chosen):
        self.norms = self.steepness * (self.optimum - self.body).norm(dim=2)
        present = self.samples[:, :, None] > 0
        self.body += torch.where(present, (self.optimum - self.body) / 2, 0.0)
        self.norms = torch.where(self.samples > 0, self.norms, torch.nan)
        return {
            code: Message(
                {"body": self.body[code], GRADIENT_NORM: self.norms[code]},
                self.samples[code],
                frozenset({GRADIENT_NORM}),
            )
            for code in chosen
        }

    def receive(self, messages):
        for code, message in messages.items():
            self.body[code] = message.tensors["body"]

    def score(self, _number):
        return "near"

    def state(self, _number):
        return {"body": self.body.numpy().copy()}

    def load(self, _number, arrays):
        self.body.copy_(torch.from_numpy(arrays["body"]))


SIMILARITIES = {"gcfl": UpdateCosine, "gcfl_plus": lambda: GradientNorms(5)}


def run(name, kinds=KINDS, checkpoint=Checkpoint(None, ""), progress=lambda *_: None, declared=AXES, **options):
    clients = Clients(kinds)
    server = GCFL(
        clients.institutions, {"body": torch.zeros(2, 2)}, SIMILARITIES[name](), eps1=0.05, eps2=0.2, **options
    )
    people = dict.fromkeys(clients.institutions, 9)
    wire = Wire(Ledger(declared), people, WeightNoise(0.0, Streams(0), (0, 1)), dict.fromkeys(clients.institutions, 5))
    federate(clients, server, wire, ROUNDS, checkpoint, progress)
    return clients, server, wire.ledger.rows()
