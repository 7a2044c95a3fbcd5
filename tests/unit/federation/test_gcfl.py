"""GCFL and GCFL+ find kinds of institutions, in every fold for itself, and go on after an interruption."""

import numpy as np
import pytest
import torch

from brainfed.federation import Message
from brainfed.federation._sharing import UndeclaredCrossing
from brainfed.federation.strategies import GCFL, FedAvg, GradientNorms, UpdateCosine
from brainfed.federation.strategies._gcfl import GRADIENT_NORM
from brainfed.runtime import UserError
from support.sites.two_kinds import ABSENT, KINDS, ROUNDS, SIMILARITIES, run

SERVERS = list(SIMILARITIES)


def kinds_found(clusters):
    """Whether a partition (M,) is that of the kinds; of the two the first institution's is number 0."""
    return clusters.tolist() == list(KINDS)


@pytest.mark.parametrize("clustering", ["minimum_cut", "balanced"])
@pytest.mark.parametrize("name", SERVERS)
def test_two_kinds_of_institutions_are_found_in_the_first_round_that_may_cut(name, clustering):
    clients, server, _ = run(name, clustering=clustering)
    assert server.clusters.shape == (ROUNDS, 2, len(KINDS))
    assert (server.clusters[:20] == 0).all()
    assert all(kinds_found(server.clusters[number, 0]) for number in range(20, ROUNDS))
    sides = torch.tensor([1.0 - 2 * kind for kind in KINDS])
    torch.testing.assert_close(clients.body[:, 0, 0], sides * (1 - 0.5 ** (ROUNDS - 20)))


@pytest.mark.parametrize("name", SERVERS)
def test_an_institution_without_training_samples_goes_with_the_larger_part(name):
    clients, server, _ = run(name)
    found = server.clusters[-1, 1]
    others = [place for place in range(len(KINDS)) if place != ABSENT]
    assert found[others].tolist() == [KINDS[place] for place in others]
    assert KINDS[ABSENT] == 0 and found[ABSENT] == 1
    assert torch.equal(clients.body[ABSENT, 1], clients.body[KINDS.index(1), 1])


@pytest.mark.parametrize("name", SERVERS)
def test_equal_institutions_stay_together(name):
    _, server, _ = run(name, kinds=(0,) * 8)
    assert (server.clusters == 0).all()


@pytest.mark.parametrize("name", SERVERS)
def test_before_a_cut_the_models_are_those_of_federated_averaging(name):
    clients, _, _ = run(name, first_round=ROUNDS)
    averaged = FedAvg(clients.institutions, {"body": torch.zeros(2, 2)}, "subjects")
    body = torch.zeros(len(KINDS), 2, 2)
    for number in range(ROUNDS):
        present = clients.samples[:, :, None] > 0
        body += torch.where(present, (clients.optimum - body) / 2, 0.0)
        replies = {code: Message({"body": body[code]}, clients.samples[code]) for code in clients.institutions}
        averaged.aggregate(number, replies)
        body[:] = averaged.tensors["body"]
    assert torch.equal(clients.body, body)


@pytest.mark.parametrize("cut_off_after", [10, 20, 21, 23])
@pytest.mark.parametrize("name", SERVERS)
def test_a_resumed_training_ends_in_the_same_bytes(name, cut_off_after, resumed):
    expected, server, rows = run(name)
    (clients, again, counted), seen = resumed(
        lambda of: run(name, checkpoint=of.checkpoint, progress=of.progress), cut_off_after
    )
    assert seen == list(range(cut_off_after, ROUNDS + 1))
    assert counted == rows
    assert torch.equal(clients.body, expected.body)
    state = again.state()
    for key, array in server.state().items():
        np.testing.assert_array_equal(state[key], array)


def test_only_declared_tensors_cross_and_the_norm_goes_up_alone():
    _, _, rows = run("gcfl_plus")
    counted = {(row["name"], row["direction"]): (row["tensors"], row["bytes"]) for row in rows}
    each = len(KINDS) * ROUNDS
    assert counted == {
        ("body", "upload"): (each, 8 * each),
        ("body", "download"): (each, 8 * each),
        (GRADIENT_NORM, "upload"): (each, 4 * each),
        ("training-subjects", "upload"): (len(KINDS), 4 * len(KINDS)),
    }
    with pytest.raises(UndeclaredCrossing, match="gradient-norm may not leave an institution"):
        run("gcfl_plus", declared={"body": ("width",), "training-subjects": ()})


def server(similarity, institutions=(2, 5, 7), **options):
    return GCFL(institutions, {"body": torch.zeros(1, 2)}, similarity, eps1=0.1, eps2=0.5, first_round=0, **options)


def replies(rows, samples, norms=(0.0, 0.0, 0.0)):
    return {
        code: Message({"body": torch.tensor([row]), GRADIENT_NORM: torch.tensor([norm])}, torch.tensor([count]))
        for code, row, norm, count in zip((2, 5, 7), rows, norms, samples, strict=True)
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_the_users_to_mend(value):
    with pytest.raises(UserError, match=r"training of institution 5 \(fold 0, round 4\).*lower learning_rate"):
        server(UpdateCosine()).aggregate(3, replies([[0.0, 0.0], [value, 0.0], [0.0, value]], [1, 1, 1]))


def test_a_gradient_norm_that_is_not_finite_is_refused():
    sent = replies([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], [1, 1, 1], norms=(1.0, 2.0, float("inf")))
    with pytest.raises(ValueError, match="expected finite gradient norms, found inf"):
        server(GradientNorms(5)).aggregate(0, sent)


@pytest.mark.parametrize("samples", [[0, 0, 0], [4, 4, 0]])
def test_fewer_than_three_institutions_with_samples_are_not_cut(samples):
    found = server(UpdateCosine())
    found.aggregate(0, replies([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]], samples))
    assert (found.clusters == 0).all()
    assert (found.tensors["body"] == 0).all()


def test_means_are_weighted_by_numbers_of_training_samples():
    found = server(UpdateCosine())
    found.aggregate(0, replies([[4.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [1, 2, 5]))
    assert (found.clusters == 0).all()
    torch.testing.assert_close(found.tensors["body"], torch.tensor([[[0.75, 1.25]]] * 3))


def test_a_fold_without_training_samples_keeps_its_models():
    found = server(UpdateCosine())
    found.aggregate(0, replies([[4.0, 0.0], [1.0, 0.0], [0.0, 2.0]], [1, 2, 5]))
    before = found.tensors["body"].clone()
    found.aggregate(1, replies([[0.0, 0.0]] * 3, [0, 0, 0]))
    assert torch.equal(found.tensors["body"], before)
