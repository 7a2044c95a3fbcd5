"""The loop holds every family: partial sharing, single messages, clusters, logits, gradients; the wire refuses."""

import numpy as np
import pytest
import torch

from brainfed.engines.stacked.clients import StackedClients
from brainfed.engines.stacked.stacks import normalised
from brainfed.engines.stacked.training import Training
from brainfed.federation.ledger import Ledger, UndeclaredCrossing
from brainfed.federation.loop import federate
from brainfed.federation.message import Message
from brainfed.federation.pace import Pace
from brainfed.federation.privacy import WeightNoise
from brainfed.federation.strategies.alone import Alone
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.federation.wire import Wire
from brainfed.methods.gcn.fedgcn import METHOD as FEDGCN
from brainfed.methods.gcn.fedgcn import FedGCNSettings
from brainfed.models.gcn import GCN
from brainfed.runtime.jobs.checkpoints import Checkpoint, checkpoint_path
from brainfed.runtime.jobs.run import Run
from brainfed.runtime.streams import Streams
from method_inputs import method_inputs

CODES, ROUNDS, PEOPLE = (0, 1, 2, 3), 6, 9
TARGETS = torch.tensor([[1.0, 2.0], [3.0, 5.0], [-4.0, 1.0], [2.0, 0.0]])
AXES = dict.fromkeys(("body", "head", "gradient"), ("width",)) | {"logits": ("public",)}


class Clients:
    """Institutions that each draw two numbers, `body` and `head`, halfway to their own target in a round."""

    def __init__(self, shares):
        self.institutions, self.shares = CODES, shares
        self.held = {name: torch.zeros(len(CODES), 1, 2) for name in ("body", "head")}
        self.taught = torch.zeros(len(CODES), 1, 5)

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
                (self.taught if name == "logits" else self.held[name])[code] = tensor

    def score(self, _number):
        return "near"

    def state(self, _number):
        return {name: stack.numpy().copy() for name, stack in (self.held | {"taught": self.taught}).items()}

    def load(self, _number, arrays):
        for name, stack in (self.held | {"taught": self.taught}).items():
            stack.copy_(torch.from_numpy(arrays[name]))


class Apart(Alone):
    """A server that answers each institution by `answer`: name, replies (M, 1, ...) -> as many answers."""

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
    """A server that holds the model and steps down the mean of the gradients."""

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
    """To each institution the mean of itself and the next one: a message of its own."""
    return (stack + stack.roll(-1, dims=0)) / 2


def clusters(_name, stack):
    """The mean of those on the same side of zero."""
    side = stack[:, 0, 0] > 0
    return torch.stack([stack[side == side[code]].mean(dim=0) for code in CODES])


def pooled(_name, stack):
    return stack.mean(dim=0, keepdim=True).expand_as(stack)


SERVERS = {
    "whole": (("body", "head"), lambda clients: FedAvg(CODES, clients.start())),
    "partial": (("body",), lambda clients: FedAvg(CODES, clients.start())),
    "of one's own": (("body",), lambda _: Apart(neighbours)),
    "clusters": (("body",), lambda _: Apart(clusters)),
    "logits": (("logits",), lambda _: Apart(pooled)),
    "gradients": (("gradient",), lambda _: Descent()),
}


def run(name, rounds=ROUNDS, checkpoint=Checkpoint(None, ""), progress=lambda *_: None, declared=AXES, people=PEOPLE):
    shares, make = SERVERS[name]
    clients = Clients(shares)
    wire = Wire(Ledger(declared), dict.fromkeys(CODES, people), WeightNoise(0.0, Streams(0), (0,)))
    federate(clients, make(clients), wire, rounds, checkpoint, progress)
    return clients, wire.ledger.rows()


def test_a_whole_model_is_one_model_and_a_shared_body_leaves_heads_apart():
    whole, partial = run("whole")[0].held, run("partial")[0].held
    mean = TARGETS.mean(dim=0)
    for stack in (*whole.values(), partial["body"]):
        torch.testing.assert_close(stack[:, 0], (mean * (1 - 2.0**-ROUNDS)).expand(len(CODES), 2))
    torch.testing.assert_close(partial["head"][:, 0], TARGETS * (1 - 2.0**-ROUNDS))


def test_messages_of_ones_own_bring_each_institution_what_is_its():
    expected = torch.zeros(len(CODES), 2)
    for _ in range(ROUNDS):
        expected = (expected + TARGETS) / 2
        expected = (expected + expected.roll(-1, dims=0)) / 2
    torch.testing.assert_close(run("of one's own")[0].held["body"][:, 0], expected)


def test_clusters_share_a_model_each():
    body = run("clusters")[0].held["body"][:, 0]
    assert torch.equal(body[0], body[1]) and torch.equal(body[1], body[3])
    torch.testing.assert_close(body[2], TARGETS[2] * (1 - 2.0**-ROUNDS))


def test_logits_teach_and_no_weight_crosses():
    clients, rows = run("logits")
    torch.testing.assert_close(clients.held["body"][:, 0], TARGETS * (1 - 2.0**-ROUNDS))
    torch.testing.assert_close(clients.taught[0, 0], clients.held["body"].sum(dim=2).mean() * torch.arange(5.0))
    assert {(row["name"], row["axes"]) for row in rows} == {("logits", "public")}


def test_gradients_descend_as_on_pooled_data():
    body, expected = run("gradients")[0].held["body"], torch.zeros(2)
    for _ in range(ROUNDS):
        trained = (expected + TARGETS) / 2
        expected = expected - (trained - TARGETS).mean(dim=0) / 4
    torch.testing.assert_close(body[:, 0], expected.expand(len(CODES), 2))


@pytest.mark.parametrize("name", list(SERVERS))
def test_every_kind_resumes_to_the_same_bytes(name, tmp_path, monkeypatch):
    monkeypatch.setattr(Pace, "due", lambda _: True)
    expected, rows = run(name)
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")

    def cut_off(done, *_):
        if done == 4:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(name, checkpoint=checkpoint, progress=cut_off)
    seen = []
    resumed, again = run(name, checkpoint=checkpoint, progress=lambda done, *_: seen.append(done))
    assert seen == [4, 5, 6]
    assert again == rows
    for key, array in expected.state(0).items():
        np.testing.assert_array_equal(resumed.state(0)[key], array)


@pytest.mark.parametrize("keeps", [True, False])
def test_the_state_after_the_last_round_is_kept_on_request(keeps, tmp_path):
    place = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")
    clients = Clients(("body",))
    line = Wire(Ledger(AXES), dict.fromkeys(CODES, PEOPLE), WeightNoise(0.0, Streams(0), (0,)))
    federate(clients, FedAvg(CODES, clients.start()), line, 2, place, lambda *_: None, keeps_last=keeps)
    assert place.path.exists() == keeps


def test_replies_are_averaged_in_the_order_of_their_institutions():
    """Sums of floats depend on their order, and a simulation must not on the order of its replies."""
    values = {0: 1e8, 1: -1e8, 2: 1.0, 3: 0.25}
    sums = []
    for order in (CODES, CODES[::-1]):
        server = FedAvg(CODES, {"body": torch.zeros(1, 1)})
        server.aggregate(0, {code: Message({"body": torch.full((1, 1), values[code])}) for code in order})
        sums.append(server.tensors["body"])
    assert torch.equal(*sums)


def test_a_round_counts_what_goes_up_and_what_comes_down():
    _, rows = run("partial")
    assert [(row["name"], row["direction"], row["tensors"], row["bytes"]) for row in rows] == [
        ("body", way, len(CODES) * ROUNDS, len(CODES) * ROUNDS * 8) for way in ("download", "upload")
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"declared": {"head": ("width",)}}, "body may not leave an institution: declared are head"),
        ({"people": 2}, "body: axis width of 2 entries is as long as the institution's list"),
    ],
)
def test_the_wire_refuses_what_was_not_declared_and_what_looks_like_people(changes, message):
    with pytest.raises(UndeclaredCrossing, match=message):
        run("partial", **changes)


def wire(declared=AXES, noise=0.0, folds=(4, 7), **options):
    return Wire(Ledger(declared), dict.fromkeys(CODES, PEOPLE), WeightNoise(noise, Streams(0), folds), **options)


def body(*shape, **options):
    return Message({"body": torch.zeros(shape)}, **options)


def test_people_cannot_cross_in_the_place_of_folds():
    with pytest.raises(UndeclaredCrossing, match=r"body: expected 2 folds first, found \(9, 2\)"):
        wire().up(0, {0: body(PEOPLE, 2)})


def test_whoever_takes_no_part_sends_and_gets_nothing_undeclared():
    absent = torch.tensor([0, 5])
    with pytest.raises(UndeclaredCrossing):
        wire({"head": ("width",)}).up(0, {0: body(2, 2, samples=absent)})
    with pytest.raises(UndeclaredCrossing):
        wire({"head": ("width",)}).down(0, {0: body(2, 2)}, to=())


def test_the_first_fold_is_counted_of_those_that_take_part():
    line = wire()
    replies = {0: body(2, 3), 1: body(2, 3, samples=torch.tensor([0, 5])), 2: body(2, 3)}
    line.up(0, replies)
    line.down(0, {code: body(2, 3) for code in CODES}, to={0, 2})
    assert [(row["direction"], row["institutions"], row["bytes"]) for row in line.ledger.rows()] == [
        ("download", "0 2", 24),
        ("upload", "0 2", 24),
    ]


def test_numbers_of_subjects_reach_the_server_only_where_they_are_reported():
    reply = {0: body(2, 3, samples=torch.tensor([7, 0]))}
    assert wire().up(0, reply)[0].samples.tolist() == [1, 0]
    declared = AXES | {"training-subjects": ()}
    line = wire(declared, reported={0: 7})
    assert line.up(0, reply)[0].samples.tolist() == [7, 0]
    assert {row["name"] for row in line.ledger.rows()} == {"body", "training-subjects"}


def test_noise_goes_on_every_fold_of_a_reply_and_on_no_answer():
    line = wire(noise=1.0)
    parameter = torch.nn.Parameter(torch.zeros(2, 3))
    sent = line.up(0, {0: Message({"body": parameter, "head": torch.zeros(2, 3)}, plain=frozenset({"head"}))})
    assert (sent[0].tensors["body"] != 0).all()
    assert (sent[0].tensors["head"] == 0).all()
    assert not torch.equal(sent[0].tensors["body"][0], sent[0].tensors["body"][1])
    assert (line.down(0, {0: body(2, 3)}, to={0})[0].tensors["body"] == 0).all()


def test_an_attack_replaces_replies_after_the_noise_and_before_the_server():
    def flipped(number, replies):
        assert number == 3
        return {0: Message({"body": -replies[0].tensors["body"]})}

    line = wire(noise=1.0, attack=flipped)
    sent = {code: Message({"body": torch.zeros(2, 3)}) for code in (0, 1)}
    got = line.up(3, sent)
    assert torch.equal(got[0].tensors["body"], -sent[0].tensors["body"])
    assert got[1].tensors["body"] is sent[1].tensors["body"]


def test_an_institution_that_is_the_server_sends_one_noisy_copy_and_nothing_to_itself():
    line = wire(noise=1.0, home=2)
    model = body(2, 3)
    got = line.down(0, dict.fromkeys(CODES, model), to=CODES)
    assert got[2] is model and (model.tensors["body"] == 0).all()
    assert got[0] is got[1] is got[3] and (got[0].tensors["body"] != 0).all()
    line.up(0, {code: body(2, 3, plain=frozenset({"body"})) for code in CODES})
    rows = {row["direction"]: row for row in line.ledger.rows()}
    for row in rows.values():
        assert (row["to"], row["institutions"], row["tensors"], row["rounds"]) == ("institutions", "0 1 2 3", 6, 1)


def test_the_first_messages_open_a_training_and_are_sent_again_uncounted_when_it_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(Pace, "due", lambda _: True)

    asked = []

    class Opening(FedAvg):
        def broadcast(self, number):
            asked.append(number)
            return dict.fromkeys(self.institutions, Message(self.tensors))

    monkeypatch.setitem(SERVERS, "opening", (("body",), lambda clients: Opening(CODES, clients.start())))
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")
    run("opening", rounds=2)
    assert asked == [0, 1, 2]

    def cut_off(done, *_):
        if done == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run("opening", checkpoint=checkpoint, progress=cut_off)
    asked.clear()
    _, rows = run("opening", checkpoint=checkpoint)
    assert asked == [1, *range(2, ROUNDS + 1)]
    assert [row["tensors"] for row in rows] == [len(CODES) * (ROUNDS + 1), len(CODES) * ROUNDS]
    assert [row["rounds"] for row in rows] == [ROUNDS + 1, ROUNDS]


class Some(FedAvg):
    """A server that answers some institutions alone."""

    answered: tuple[int, ...] = ()

    def broadcast(self, number):
        sent = super().broadcast(number)
        return {code: sent[code] for code in self.answered if code in sent}


def stacked(inputs):
    settings = FedGCNSettings(rounds=ROUNDS, local_epochs=2, hidden=(6, 3), learning_rate=0.01)
    module = GCN(inputs.features[0].shape[1], settings.hidden, 2)
    task = Training(module, inputs, settings, Run(), "federated", FEDGCN.shared_tensors, normalised)
    return StackedClients(task.network((0, 1)), settings, task.shares), task.axes


@pytest.mark.parametrize("answered", [(0, 1), ()], ids=str)
def test_stacked_institutions_without_an_answer_keep_their_own_also_when_resumed(answered, tmp_path, monkeypatch):
    monkeypatch.setattr(Some, "answered", answered)
    inputs = method_inputs(subjects=60, dimensions=9, institutions=3, folds=2)
    monkeypatch.setattr(Pace, "due", lambda _: True)

    def trained(checkpoint=Checkpoint(None, ""), progress=lambda *_: None):
        clients, axes = stacked(inputs)
        ledger = Ledger(FEDGCN.shared_tensors, axes)
        line = Wire(ledger, dict.fromkeys(range(3), 20), WeightNoise(0.0, Streams(0), (0, 1)))
        federate(clients, Some(clients.institutions, clients.start()), line, ROUNDS, checkpoint, progress)
        return clients

    def cut_off(done, *_):
        if done == 4:
            raise InterruptedError

    whole = trained()
    weights = whole.network.stacks()["weight-0"]
    assert torch.equal(weights[0], weights[1]) == bool(answered)
    assert not torch.equal(weights[0], weights[2])
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")
    with pytest.raises(InterruptedError):
        trained(checkpoint, cut_off)
    resumed = trained(checkpoint)
    assert resumed.curves.probabilities.tobytes() == whole.curves.probabilities.tobytes()
    for name, stack in whole.network.stacks().items():
        assert torch.equal(resumed.network.stacks()[name], stack)
