"""Toy institutions with two parameters, one toy server a kind of federation, and a run of both."""

import torch

from brainfed.federation import Ledger, Message, WeightNoise, Wire, federate
from brainfed.federation.strategies import Alone, FedAvg, SimilarityWeighted
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Checkpoint

CODES, ROUNDS, PEOPLE = (0, 1, 2, 3), 6, 9
TARGETS = torch.tensor([[1.0, 2.0], [3.0, 5.0], [-4.0, 1.0], [2.0, 0.0]])
AXES = dict.fromkeys(("body", "head", "gradient"), ("width",)) | {"logits": ("public",)}


class Clients:
    """Institutions with two parameters each, `body` and `head`; a round halves their distance to an own target."""

    def __init__(self, shares):
        self.institutions, self.shares = CODES, shares
        self.held = {name: torch.zeros(len(CODES), 1, 2) for name in ("body", "head")}
        self.received_logits = torch.zeros(len(CODES), 1, 5)

    def start(self):
        return {name: self.held[name][0] for name in self.shares}

    def fit(self, _number, chosen):
        for code in chosen:
            for stack in self.held.values():
                stack[code, 0] += (TARGETS[code] - stack[code, 0]) / 2
        return {code: Message(self._sent(code)) for code in chosen}

    def _sent(self, code):
        sent = {name: self.held[name][code] for name in self.shares if name in self.held}
        if "logits" in self.shares:
            sent["logits"] = self.held["body"][code].sum() * torch.arange(5.0)[None]
        if "gradient" in self.shares:
            sent["gradient"] = (self.held["body"][code] - TARGETS[code]).clone()
        return sent

    def receive(self, messages):
        for code, message in messages.items():
            for name, tensor in message.tensors.items():
                (self.received_logits if name == "logits" else self.held[name])[code] = tensor

    def score(self, _number):
        return "near"

    def state(self, _number):
        return {
            name: stack.numpy().copy()
            for name, stack in (self.held | {"received_logits": self.received_logits}).items()
        }

    def load(self, _number, arrays):
        for name, stack in (self.held | {"received_logits": self.received_logits}).items():
            stack.copy_(torch.from_numpy(arrays[name]))


class OwnMessages(Alone):
    """A server that sends each institution its own message, `answer`: name, replies (M, 1, ...) -> (M, 1, ...)."""

    def __init__(self, answer):
        super().__init__(CODES)
        self.answer, self.replies = answer, {}

    def aggregate(self, _number, replies):
        names = next(iter(replies.values())).tensors
        self.replies = {name: torch.stack([replies[code].tensors[name] for code in CODES]) for name in names}

    def broadcast(self, _number):
        answers = {name: self.answer(name, stack) for name, stack in self.replies.items()}
        return {code: Message({name: stack[code] for name, stack in answers.items()}) for code in CODES}


class Descent(Alone):
    """A server with the model; it descends along the mean gradient."""

    def __init__(self):
        super().__init__(CODES)
        self.body = torch.zeros(1, 2)

    def aggregate(self, _number, replies):
        self.body = self.body - torch.stack([reply.tensors["gradient"] for reply in replies.values()]).mean(dim=0) / 4

    def broadcast(self, _number):
        return dict.fromkeys(CODES, Message({"body": self.body}))

    def state(self):
        return {"body": self.body.numpy()}

    def load(self, arrays):
        self.body = torch.from_numpy(arrays["body"].copy())


def neighbours(_name, stack):
    """To each institution the mean of itself and the next one."""
    return (stack + stack.roll(-1, dims=0)) / 2


def clusters(_name, stack):
    """The mean of the institutions on the same side of zero."""
    side = stack[:, 0, 0] > 0
    return torch.stack([stack[side == side[code]].mean(dim=0) for code in CODES])


def pooled(_name, stack):
    return stack.mean(dim=0, keepdim=True).expand_as(stack)


SERVERS = {
    "whole": (("body", "head"), lambda clients: FedAvg(CODES, clients.start())),
    "partial": (("body",), lambda clients: FedAvg(CODES, clients.start())),
    "of one's own": (("body",), lambda _: OwnMessages(neighbours)),
    "clusters": (("body",), lambda _: OwnMessages(clusters)),
    "similarity": (("body", "head"), lambda clients: SimilarityWeighted(CODES, clients.start())),
    "logits": (("logits",), lambda _: OwnMessages(pooled)),
    "gradients": (("gradient",), lambda _: Descent()),
}


def run(name, rounds=ROUNDS, checkpoint=Checkpoint(None, ""), progress=lambda *_: None, declared=AXES, people=PEOPLE):
    shares, make = SERVERS[name]
    clients = Clients(shares)
    wire = Wire(Ledger(declared), dict.fromkeys(CODES, people), WeightNoise(0.0, Streams(0), (0,)))
    federate(clients, make(clients), wire, rounds, checkpoint, progress)
    return clients, wire.ledger.rows()
