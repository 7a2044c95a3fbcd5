"""The server of a federated ridge finds the solutions of the normal equations, for all penalties at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation import Message
from brainfed.federation.strategies import Krylov
from brainfed.federation.strategies._krylov import KrylovSpaces
from reference.haufe import dense_pattern

PENALTIES = (0.03, 0.5, 10.0)


def problem(n=40, d=60, systems=3, seed=0):
    """Features (n, d), targets (S, n) and training masks (S, n)."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, d)) * np.geomspace(3, 0.1, d)
    training = rng.random((systems, n)) < 0.8
    training[:, :2] = True
    targets = np.sign(rng.standard_normal((systems, n)) + features[:, 0])
    return features / np.sqrt((features**2).sum(axis=1).mean()), targets, training.astype(float)


def solutions(features, targets, training):
    """(S, A, d) weights and (S, A) intercepts from the normal equations of centred data."""
    weights, intercepts = np.zeros((len(targets), 3, features.shape[1])), np.zeros((len(targets), 3))
    for system, (target, mask) in enumerate(zip(targets, training > 0, strict=True)):
        mean, level = features[mask].mean(axis=0), target[mask].mean()
        centred = features[mask] - mean
        for place, penalty in enumerate(PENALTIES):
            gram = centred.T @ centred + penalty * np.eye(features.shape[1])
            weights[system, place] = np.linalg.solve(gram, centred.T @ (target[mask] - level))
            intercepts[system, place] = level - mean @ weights[system, place]
    return weights, intercepts


def spaces(features, targets, training, rounds, size):
    labelled = torch.from_numpy(training * targets)
    rows, masks = torch.from_numpy(features), torch.from_numpy(training)
    found = KrylovSpaces.of(masks.sum(dim=1), masks @ rows, labelled.sum(dim=1), labelled @ rows, rounds)
    for _ in range(size):
        found.extend((masks * (found.last @ rows.T)) @ rows)
    return found


def every_penalty(systems):
    return torch.tensor(PENALTIES, dtype=torch.float64).expand(systems, -1)


def test_enough_directions_give_the_solutions_of_all_penalties_and_training_sets():
    features, targets, training = problem()
    found = spaces(features, targets, training, 60, 40)
    coefficients, intercepts = found.solution(every_penalty(3))
    weights, levels = solutions(features, targets, training)
    np.testing.assert_allclose(
        torch.einsum("sak,skd->sad", coefficients, found.directions[:, :60]), weights, atol=1e-10
    )
    np.testing.assert_allclose(intercepts, levels, atol=1e-10)


@given(size=st.integers(1, 30), seed=st.integers(0, 20))
@settings(max_examples=30, deadline=None)
def test_the_bound_holds_after_any_number_of_directions(size, seed):
    features, targets, training = problem(seed=seed)
    found = spaces(features, targets, training, 60, size)
    coefficients, _ = found.solution(every_penalty(3))
    weights = torch.einsum("sak,skd->sad", coefficients, found.directions[:, :60]).numpy()
    distance = np.linalg.norm(weights - solutions(features, targets, training)[0], axis=2).max()
    assert distance <= found.error(every_penalty(3)) + 1e-12


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_patterns_are_those_of_the_weights_after_any_number_of_directions(size):
    features, targets, training = problem()
    found = spaces(features, targets, training, 60, size)
    coefficients, _ = found.solution(every_penalty(3))
    weights = torch.einsum("sak,skd->sad", coefficients, found.directions[:, :60]).numpy()
    for system, mask in enumerate(training > 0):
        for place in range(3):
            expected = dense_pattern(features[mask], weights[system, place])
            np.testing.assert_allclose(found.patterns(every_penalty(3))[system, place], expected, atol=1e-10)


def test_directions_beyond_the_rank_change_nothing():
    features, targets, training = problem(n=8, d=30)
    few, many = (spaces(features, targets, training, 60, size) for size in (8, 40))
    for one, other in zip(few.solution(every_penalty(3)), many.solution(every_penalty(3)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert many.error(every_penalty(3)) < 1e-12


def test_targets_of_one_class_give_their_mean():
    features, targets, training = problem()
    found = spaces(features, np.ones_like(targets), training, 10, 3)
    coefficients, intercepts = found.solution(every_penalty(3))
    assert not coefficients.any()
    assert torch.equal(intercepts, torch.ones_like(intercepts))


def server_and_replies(split):
    """A server, and a function from its message to the replies of three institutions, summed or each its own."""
    features, targets, training = problem()
    owner = np.arange(40) % 3
    rows = torch.from_numpy(features)
    server = Krylov((0, 1, 2), 3, PENALTIES[:1], 50, 1e-9)

    def replies(messages):
        masks = [torch.from_numpy(training * (owner == code)) for code in range(3)]
        found = []
        for mask in masks:
            labelled = mask * torch.from_numpy(targets)
            tensors = {
                "count": mask.sum(dim=1),
                "feature-sum": mask @ rows,
                "target-sum": labelled.sum(dim=1),
                "feature-target-sum": labelled @ rows,
            }
            if messages:
                direction = messages[0].tensors["last-direction"][0]
                tensors = {"last-product": (mask * (direction @ rows.T)) @ rows}
            found.append({name: tensor[None] for name, tensor in tensors.items()})
        if split:
            return {code: Message(tensors) for code, tensors in enumerate(found)}
        total = {name: sum(tensors[name] for tensors in found) for name in found[0]}
        return {code: Message(total, summed=True) for code in range(3)}

    return server, replies


@pytest.mark.parametrize("split", [True, False])
def test_replies_of_institutions_give_the_pooled_solution_in_sums_or_one_by_one(split):
    server, replies = server_and_replies(split)
    number = 0
    while not server.finished():
        server.aggregate(number, replies(server.broadcast(number)))
        number += 1
    weights, _ = solutions(*problem())
    coefficients, _ = server.spaces.solution(server.own_penalties())
    found = torch.einsum("sak,skd->sad", coefficients, server.spaces.directions[:, :50])[:, 0]
    np.testing.assert_allclose(found, weights[:, 0], atol=1e-8)
    assert set(server.broadcast(number)[0].tensors) == {"last-coefficients", "last-intercepts"}


def test_a_server_that_is_stopped_and_loaded_goes_on_with_the_same_bits():
    plain, replies = server_and_replies(split=False)
    for number in range(12):
        plain.aggregate(number, replies(plain.broadcast(number)))
    stopped, _ = server_and_replies(split=False)
    for number in range(12):
        fresh, _ = server_and_replies(split=False)
        if number:
            fresh.load(stopped.state())
        fresh.aggregate(number, replies(fresh.broadcast(number)))
        stopped = fresh
    for name, array in plain.state().items():
        assert array.tobytes() == stopped.state()[name].tobytes(), name
