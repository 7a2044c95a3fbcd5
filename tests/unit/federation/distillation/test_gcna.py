"""The network's weights and steps equal those of a plain loop over samples and nodes."""

import numpy as np
import pytest
import torch

from brainfed.federation.distillation.gcna import GCNA, initial_weights, normalised_adjacency
from brainfed.federation.distillation.losses import kl
from brainfed.federation.distillation.split import right_teachers
from brainfed.runtime.streams import Streams
from reference import distillation as reference
from support.samples.public_batches import FOLDS, noise, random_batches, start


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
