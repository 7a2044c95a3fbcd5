"""GCNA's network and every objective equal plain loops over samples, nodes and batches."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from brainfed.federation.distillation import FedETObjective, FedGEMSObjective, GAHFLObjective, initial_weights
from brainfed.federation.distillation._gahfl import GCNA, normalised_adjacency
from brainfed.federation.distillation._objective import kl, right_teachers
from brainfed.runtime import Streams
from reference import distillation as reference
from support.samples.public_batches import FOLDS, ROWS, every_label, loss_and_gradient, noise, random_batches, start


def step(gcna, batch, right):
    """One step of Adam on the samples with a model in `right`; the weights before it."""
    weights = gcna.weights(batch.logits, batch.teachers, right)
    gcna.learn(weights, batch, kl(batch.teachers, batch.logits), right)
    return weights.detach()


def test_adjacency_of_two_nodes_beside_a_masked_one():
    entropies = torch.tensor([0.1, 9.0, 0.4], dtype=torch.float64)
    edge = np.exp(-0.3)
    expected = np.array([[1, 0, edge], [0, 0, 0], [edge, 0, 1]]) / (1 + edge)
    found = normalised_adjacency(entropies, torch.tensor([True, False, True]))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_equal_those_of_a_loop_over_nodes(classes):
    batch = random_batches(1, classes)[0]
    right = right_teachers(batch)
    found = GCNA(start(classes)).weights(batch.logits, batch.teachers, right).detach()
    several = 0
    for fold in range(FOLDS):
        network = reference.Network(start(classes), fold)
        for place in range(right.shape[2]):
            own = right[:, fold, place]
            expected = torch.zeros(len(own), dtype=torch.float64)
            if own.any():
                expected[own] = torch.stack(
                    network.weights(batch.logits[fold, place], list(batch.teachers[own, fold, place]))
                ).detach()
            torch.testing.assert_close(found[:, fold, place], expected, rtol=1e-10, atol=1e-12)
            several += int(own.sum() > 1)
    assert several > 3


def test_weights_of_right_models_sum_to_1_and_of_none_to_0():
    batch = random_batches(1)[0]
    right = right_teachers(batch)
    weights = GCNA(start()).weights(batch.logits, batch.teachers, right).detach()
    torch.testing.assert_close(weights.sum(dim=0), right.any(dim=0).double())
    assert not weights[~right].any()
    alone = right.sum(dim=0) == 1
    assert weights.sum(dim=0)[alone].unique().tolist() == [1]


def test_gradients_reach_the_network_alone():
    batch = random_batches(1)[0]
    gcna = GCNA(start())
    weights = gcna.weights(batch.logits, batch.teachers, right_teachers(batch))
    weights.square().sum().backward()
    assert batch.logits.grad is None
    assert all(parameter.grad.abs().sum() > 0 for parameter in gcna.parameters.values())


@pytest.mark.parametrize("training", ["labels", "l_wd"])
def test_a_fold_without_a_right_model_keeps_weights_moments_and_count(training):
    batches = random_batches(3)
    gcna = GCNA(start(), training)
    step(gcna, batches[0], right_teachers(batches[0]))
    before = {name: np.array(array) for name, array in gcna.state().items()}
    right = right_teachers(batches[1])
    right[:, 1] = False
    step(gcna, batches[1], right)
    for fold in range(FOLDS):
        moved = [
            not np.array_equal(parameter[fold].detach().numpy(), before[name][fold])
            for name, parameter in gcna.parameters.items()
        ]
        assert any(moved) == (fold != 1 and bool(right[:, fold].any()))
    count = len(gcna.parameters)
    own = [f"adam/{index}/{name}" for index in range(count, 2 * count) for name in ("step", "exp_avg", "exp_avg_sq")]
    assert all(np.array_equal(gcna.state()[name], before[name]) for name in own)
    assert int(gcna.state()["adam/0/step"]) == 2


def test_training_on_labels_finds_the_more_certain_model():
    random = torch.Generator().manual_seed(2)
    batch = random_batches(1, institutions=2)[0]
    weak = noise(batch.logits.shape, random).abs() * 0.1
    weak = torch.where(torch.nn.functional.one_hot(batch.labels, 2) > 0, weak, -weak)
    batch.teachers[0], batch.teachers[1] = weak, 30 * weak
    right = torch.ones_like(right_teachers(batch))
    gcna = GCNA(start())
    first = step(gcna, batch, right)[1].mean()
    for _ in range(300):
        last = step(gcna, batch, right)[1].mean()
    assert last > max(first, 0.9)


def test_initial_weights_are_keyed_by_the_number_of_the_fold():
    every, second = initial_weights(Streams(3), (0, 1, 2), 2), initial_weights(Streams(3), (1,), 2)
    assert {name: tuple(tensor.shape) for name, tensor in every.items()} == {
        "weight_0": (3, 2, 20), "bias_0": (3, 20), "weight_1": (3, 20, 20), "bias_1": (3, 20),
    }  # fmt: skip
    for name, tensor in second.items():
        torch.testing.assert_close(tensor[0], every[name][1], rtol=0, atol=0)
    assert float(every["weight_0"].abs().max()) <= (6 / 22) ** 0.5
    assert not torch.equal(every["weight_0"][0], every["weight_0"][1])


DOUBLE = torch.float64


def gahfl(**settings):
    def make(classes):
        first = start(classes)
        return GAHFLObjective(ROWS, classes, first, **settings), reference.GAHFL(first, **settings)

    return make


def fedgems(**settings):
    def make(classes):
        return FedGEMSObjective(FOLDS, ROWS, classes, dtype=DOUBLE, **settings), reference.FedGEMS(**settings)

    return make


PAIRS = {
    "gahfl": gahfl(),
    "gahfl other weights": gahfl(beta=2.0, gamma=3.0, epsilon=0.3, xi=0.7, momentum=0.5),
    "gahfl without bce": gahfl(drop="bce"),
    "gahfl without sd": gahfl(drop="sd"),
    "gahfl without wd": gahfl(drop="wd"),
    "gahfl without teachers": gahfl(drop="teachers"),
    "gahfl l_wd": gahfl(gcna_training="l_wd"),
    "fedgems": fedgems(),
    "fedgems right": fedgems(ensemble="right", epsilon=0.75, xi=0.75),
    "fedet": lambda classes: (FedETObjective(), reference.FedET()),
    "fedet other weights": lambda classes: (FedETObjective(consensus=0.5, diversity=2), reference.FedET(0.5, 2)),
}

READINGS = list(product(("step", "round"), ("training", "round")))

SITUATIONS = {
    "two classes": {},
    "three classes": {"classes": 3},
    "one institution": {"institutions": 1},
    "all right": {"skill": 30.0},
    "all wrong": {"skill": -30.0},
}


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("pair", PAIRS)
def test_losses_and_gradients_equal_those_of_a_loop(pair, situation):
    settings = SITUATIONS[situation]
    fast, slow = PAIRS[pair](settings.get("classes", 2))
    for batch in random_batches(4, **settings):
        for found, expected in zip(loss_and_gradient(fast, batch), loss_and_gradient(slow, batch), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", [gahfl, fedgems])
@pytest.mark.parametrize(("when", "lifetime"), READINGS)
def test_rounds_of_every_reading_equal_those_of_a_loop(method, when, lifetime):
    """Three rounds of three steps; what is right at their beginning is drawn anew."""
    fast, slow = method(self_evaluation=when, lifetime=lifetime)(2)
    random = torch.Generator().manual_seed(3)
    batches, parts = random_batches(9), torch.zeros(3)
    labels, held = every_label(batches), torch.ones(FOLDS, ROWS, dtype=torch.bool)
    for number in range(3):
        logits = noise((FOLDS, ROWS, 2), random)
        fast.begin(lambda logits=logits: logits, labels, held)
        for fold in range(FOLDS):
            slow.pool.begin(fold, logits[fold], labels[fold])
        for batch in batches[3 * number : 3 * number + 3]:
            own = fast.evaluation.split(batch)
            parts += torch.stack([own.right.sum(), own.forgotten.sum(), own.never.sum()])
            for found, expected in zip(loss_and_gradient(fast, batch), loss_and_gradient(slow, batch), strict=True):
                torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-9)
        shares = [slow.pool.taught[fold] / slow.pool.visits[fold] for fold in range(FOLDS)]
        assert fast.visits.share.tolist() == pytest.approx(shares)
    assert (parts > 4).tolist() == [True, (when, lifetime) != ("round", "round"), True]
    assert 0 < max(shares) < 1


def test_an_evaluation_of_the_round_holds_for_all_of_its_steps():
    """What a step predicts itself neither parts the samples nor enters the pool."""
    fast = gahfl(self_evaluation="round")(2)[0]
    batch, held = random_batches(1, skill=30.0)[0], torch.ones(FOLDS, ROWS, dtype=torch.bool)
    labels = every_label([batch])
    wrong = torch.nn.functional.one_hot(1 - labels, 2).double()
    fast.begin(lambda: wrong, labels, held)
    for _ in range(2):
        assert not fast.evaluation.split(batch).right.any()
        fast.loss(batch)
    assert not fast.pool.state()["known"].any()
    fast.begin(lambda: 1 - wrong, labels, held)
    assert fast.pool.state()["known"].all()
    fast.begin(lambda: wrong, labels, held)
    parts = fast.evaluation.split(batch)
    assert torch.equal(parts.forgotten, batch.weight > 0) and not parts.never.any()


def test_padding_is_never_right():
    fast = fedgems(self_evaluation="round")(2)[0]
    held = torch.arange(ROWS).expand(FOLDS, -1) < 5
    fast.begin(lambda: torch.ones(FOLDS, ROWS, 2).double(), torch.zeros(FOLDS, ROWS, dtype=torch.int64), held)
    np.testing.assert_array_equal(fast.pool.state()["known"], held.numpy())


@pytest.mark.parametrize("training", ["labels", "l_wd"])
def test_the_network_takes_the_steps_of_the_loop(training):
    fast, slow = gahfl(gcna_training=training)(2)
    for batch in random_batches(8):
        fast.loss(batch), slow.loss(batch)
    assert (fast.pool.known(torch.arange(ROWS).expand(FOLDS, -1)).sum(dim=1) > 3).all()
    for name, parameter in fast.gcna.parameters.items():
        expected = torch.stack([network.parameters[name] for network in slow.networks]).detach()
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-7, atol=1e-9)
        assert not torch.allclose(expected, start()[name], atol=1e-4)


def test_the_batches_have_samples_of_every_part():
    objective = gahfl()(2)[0]
    counts = torch.zeros(3)
    for batch in random_batches(4):
        parts = objective.evaluation.split(batch)
        counts += torch.stack([parts.right.sum(), parts.forgotten.sum(), parts.never.sum()])
        objective.loss(batch)
    assert (counts > 4).all()


@pytest.mark.parametrize("pair", PAIRS)
def test_padding_has_no_effect(pair):
    random = torch.Generator().manual_seed(9)
    one, other = PAIRS[pair](2)[0], PAIRS[pair](2)[0]
    for batch in random_batches(4):
        padded = batch.weight == 0
        logits = torch.where(padded[..., None], noise(batch.logits.shape, random), batch.logits.detach())
        changed = replace(
            batch,
            logits=logits.requires_grad_(),
            labels=torch.where(padded, 1 - batch.labels, batch.labels),
            rows=torch.where(padded, batch.rows[:, 1:2], batch.rows),
            teachers=torch.where(padded[..., None], noise(batch.teachers.shape, random), batch.teachers),
        )
        loss, gradient = loss_and_gradient(one, batch)
        found, changed_gradient = loss_and_gradient(other, changed)
        torch.testing.assert_close(found, loss, rtol=1e-12, atol=0)
        torch.testing.assert_close(changed_gradient, gradient, rtol=1e-9, atol=1e-15)
        assert not gradient[padded].any()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_fold_does_not_depend_on_the_other_folds(pair):
    one, other = PAIRS[pair](2)[0], PAIRS[pair](2)[0]
    for batch, strange in zip(random_batches(4), random_batches(4, seed=77), strict=True):
        mixed = replace(
            batch,
            logits=torch.cat([strange.logits[:1], batch.logits[1:2], strange.logits[2:]]).detach().requires_grad_(),
            labels=torch.cat([strange.labels[:1], batch.labels[1:2], strange.labels[2:]]),
            rows=torch.cat([strange.rows[:1], batch.rows[1:2], strange.rows[2:]]),
            teachers=torch.cat([strange.teachers[:, :1], batch.teachers[:, 1:2], strange.teachers[:, 2:]], dim=1),
            present=torch.cat([strange.present[:, :1], batch.present[:, 1:2], strange.present[:, 2:]], dim=1),
        )
        for found, expected in zip(loss_and_gradient(other, mixed), loss_and_gradient(one, batch), strict=True):
            torch.testing.assert_close(found[1], expected[1], rtol=1e-12, atol=1e-15)
            assert not torch.equal(found[0], expected[0])


@pytest.mark.parametrize("pair", PAIRS)
def test_an_absent_institution_has_no_effect(pair):
    one, other = PAIRS[pair](2)[0], PAIRS[pair](2)[0]
    for batch in random_batches(3):
        absent = ~batch.present[:, :, None, None]
        changed = replace(batch, teachers=torch.where(absent, 40 - batch.teachers, batch.teachers))
        for found, expected in zip(loss_and_gradient(other, changed), loss_and_gradient(one, batch), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("pair", PAIRS)
def test_a_fold_without_samples_in_the_batch_has_no_loss(pair):
    objective = PAIRS[pair](2)[0]
    batch = random_batches(1)[0]
    weight = batch.weight.clone()
    weight[0] = 0
    loss, gradient = loss_and_gradient(objective, replace(batch, weight=weight))
    assert float(loss[0]) == 0
    assert not gradient[0].any()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_loaded_state_goes_on_to_the_same_losses(pair):
    objective, resumed = PAIRS[pair](2)[0], PAIRS[pair](2)[0]
    batches = random_batches(6)
    for batch in batches[:3]:
        objective.loss(batch)
    resumed.load({name: np.array(array) for name, array in objective.state().items()})
    for batch in batches[3:]:
        assert torch.equal(resumed.loss(batch), objective.loss(batch))
    again = objective.state()
    for name, array in resumed.state().items():
        np.testing.assert_array_equal(array, again[name])
