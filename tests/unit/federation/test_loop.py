"""The loop holds every family: partial sharing, own messages, clusters, logits, gradients."""

import numpy as np
import pytest
import torch

from brainfed.engines import axes_of
from brainfed.engines.stacked import StackedTraining
from brainfed.federation import Ledger, Message, Pace, WeightNoise, Wire, federate
from brainfed.federation.strategies import FedAvg
from brainfed.graphs import normalised_adjacency
from brainfed.methods.gcn.declaration import FEDGCN, FedGCNSettings
from brainfed.models import GCN
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from support.samples.method_inputs import method_inputs
from support.sites.toy_federation import AXES, CODES, PEOPLE, ROUNDS, SERVERS, TARGETS, Clients, run


def test_full_sharing_gives_one_model_and_a_shared_body_keeps_own_heads():
    whole, partial = run("whole")[0].held, run("partial")[0].held
    mean = TARGETS.mean(dim=0)
    for stack in (*whole.values(), partial["body"]):
        torch.testing.assert_close(stack[:, 0], (mean * (1 - 2.0**-ROUNDS)).expand(len(CODES), 2))
    torch.testing.assert_close(partial["head"][:, 0], TARGETS * (1 - 2.0**-ROUNDS))


def test_each_institution_can_receive_its_own_message():
    expected = torch.zeros(len(CODES), 2)
    for _ in range(ROUNDS):
        expected = (expected + TARGETS) / 2
        expected = (expected + expected.roll(-1, dims=0)) / 2
    torch.testing.assert_close(run("of one's own")[0].held["body"][:, 0], expected)


def test_each_cluster_shares_one_model():
    body = run("clusters")[0].held["body"][:, 0]
    assert torch.equal(body[0], body[1]) and torch.equal(body[1], body[3])
    torch.testing.assert_close(body[2], TARGETS[2] * (1 - 2.0**-ROUNDS))


def test_logits_cross_without_weights():
    clients, rows = run("logits")
    torch.testing.assert_close(clients.held["body"][:, 0], TARGETS * (1 - 2.0**-ROUNDS))
    torch.testing.assert_close(
        clients.received_logits[0, 0], clients.held["body"].sum(dim=2).mean() * torch.arange(5.0)
    )
    assert {(row["name"], row["axes"]) for row in rows} == {("logits", "public")}


def test_averaged_gradients_equal_those_of_pooled_data():
    body, expected = run("gradients")[0].held["body"], torch.zeros(2)
    for _ in range(ROUNDS):
        trained = (expected + TARGETS) / 2
        expected = expected - (trained - TARGETS).mean(dim=0) / 4
    torch.testing.assert_close(body[:, 0], expected.expand(len(CODES), 2))


@pytest.mark.parametrize("name", list(SERVERS))
def test_every_strategy_resumes_to_the_same_bytes(name, resumed):
    expected, rows = run(name)
    (clients, again), seen = resumed(lambda of: run(name, checkpoint=of.checkpoint, progress=of.progress), 4)
    assert seen == [4, 5, 6]
    assert again == rows
    for key, array in expected.state(0).items():
        np.testing.assert_array_equal(clients.state(0)[key], array)


@pytest.mark.parametrize("keeps", [True, False])
def test_the_state_after_the_last_round_is_kept_on_request(keeps, tmp_path):
    place = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")
    clients = Clients(("body",))
    line = Wire(Ledger(AXES), dict.fromkeys(CODES, PEOPLE), WeightNoise(0.0, Streams(0), (0,)))
    federate(clients, FedAvg(CODES, clients.start()), line, 2, place, lambda *_: None, keeps_last=keeps)
    assert place.path.exists() == keeps


def test_replies_are_averaged_in_the_order_of_their_institutions():
    """Sums of floats depend on their order, and a simulation must not depend on the order of replies."""
    values = {0: 1e8, 1: -1e8, 2: 1.0, 3: 0.25}
    sums = []
    for order in (CODES, CODES[::-1]):
        server = FedAvg(CODES, {"body": torch.zeros(1, 1)})
        server.aggregate(0, {code: Message({"body": torch.full((1, 1), values[code])}) for code in order})
        sums.append(server.tensors["body"])
    assert torch.equal(*sums)


def test_a_round_counts_uploads_and_downloads():
    _, rows = run("partial")
    assert [(row["name"], row["direction"], row["tensors"], row["bytes"]) for row in rows] == [
        ("body", way, len(CODES) * ROUNDS, len(CODES) * ROUNDS * 8) for way in ("download", "upload")
    ]


def test_a_resumed_training_sends_its_last_messages_again_uncounted(tmp_path, monkeypatch):
    monkeypatch.setattr(Pace, "due", lambda _: True)

    broadcasts = []

    class Opening(FedAvg):
        def broadcast(self, number):
            broadcasts.append(number)
            return dict.fromkeys(self.institutions, Message(self.tensors))

    monkeypatch.setitem(SERVERS, "opening", (("body",), lambda clients: Opening(CODES, clients.start())))
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "out", "0a"), "0a")
    run("opening", rounds=2)
    assert broadcasts == [0, 1, 2]

    def cut_off(done, *_):
        if done == 2:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run("opening", checkpoint=checkpoint, progress=cut_off)
    broadcasts.clear()
    _, rows = run("opening", checkpoint=checkpoint)
    assert broadcasts == [1, *range(2, ROUNDS + 1)]
    assert [row["tensors"] for row in rows] == [len(CODES) * (ROUNDS + 1), len(CODES) * ROUNDS]
    assert [row["rounds"] for row in rows] == [ROUNDS, ROUNDS]


class PartialFedAvg(FedAvg):
    """A server that sends messages to some institutions only."""

    receivers: tuple[int, ...] = ()

    def broadcast(self, number):
        sent = super().broadcast(number)
        return {code: sent[code] for code in self.receivers if code in sent}


def stacked(inputs):
    settings = FedGCNSettings(rounds=ROUNDS, local_epochs=2, hidden=(6, 3), learning_rate=0.01)
    module = GCN(inputs.features[0].shape[1], settings.hidden, 2)
    task = StackedTraining(
        inputs, settings, Run(), "federated", FEDGCN.crossing.tensors, module=module, propagate=normalised_adjacency
    )
    return task.clients((0, 1), Ledger({})), axes_of(module)


@pytest.mark.parametrize("receivers", [(0, 1), ()], ids=str)
def test_stacked_institutions_without_a_message_keep_their_weights_also_when_resumed(receivers, resumed, monkeypatch):
    monkeypatch.setattr(PartialFedAvg, "receivers", receivers)
    inputs = method_inputs(subjects=60, dimensions=9, institutions=3, folds=2)

    def trained(run):
        clients, axes = stacked(inputs)
        ledger = Ledger(FEDGCN.crossing.tensors, axes)
        line = Wire(ledger, dict.fromkeys(range(3), 20), WeightNoise(0.0, Streams(0), (0, 1)))
        federate(
            clients, PartialFedAvg(clients.institutions, clients.start()), line, ROUNDS, run.checkpoint, run.progress
        )
        return clients

    whole = trained(Run())
    weights = whole.network.stacks()["weight-0"]
    assert torch.equal(weights[0], weights[1]) == bool(receivers)
    assert not torch.equal(weights[0], weights[2])
    again, _ = resumed(trained, 4)
    assert again.curves.probabilities.tobytes() == whole.curves.probabilities.tobytes()
    for name, stack in whole.network.stacks().items():
        assert torch.equal(again.network.stacks()[name], stack)
