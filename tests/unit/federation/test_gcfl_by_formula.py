"""GCFL and GCFL+ with arbitrary updates: the plain version gives the same clusters and models, invariants hold."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation.message import Message
from brainfed.federation.strategies.gcfl import GCFL
from brainfed.federation.strategies.similarity import GRADIENT_NORM, GradientNorms, UpdateCosine
from reference.clustered_federation import train

LENGTH, FIRST, EPS = 3, 2, {"eps1": 1.0, "eps2": 1.6}
SHAPES = {"weight": (2, 2), "bias": (1,)}


def trained(updates, norms, samples, similarity, **options):
    """The server after every round of updates (rounds, M, F, 5), and copies of its models (rounds, M, F, 5)."""
    rounds, institutions, folds, _ = updates.shape
    start = {name: torch.zeros(folds, *shape, dtype=torch.float64) for name, shape in SHAPES.items()}
    server = GCFL(tuple(range(institutions)), start, similarity, **EPS, first_round=FIRST, **options)
    models, sent = [], np.zeros(updates.shape[1:])
    for number in range(rounds):
        got = torch.from_numpy(sent + updates[number])
        server.aggregate(
            number,
            {
                place: Message(
                    {
                        "weight": own[:, :4].reshape(-1, 2, 2),
                        "bias": own[:, 4:],
                        GRADIENT_NORM: torch.from_numpy(norms[number, place]),
                    },
                    torch.from_numpy(samples[place]),
                )
                for place, own in enumerate(got)
            },
        )
        messages = server.broadcast(number + 1)
        sent = np.stack([_flat(messages[place]) for place in range(institutions)])
        models.append(sent)
    return server, np.stack(models)


def _flat(message):
    return torch.cat([message.tensors["weight"].flatten(1), message.tensors["bias"]], dim=1).numpy().copy()


def draws(institutions, folds, seed, rounds=7):
    rng = np.random.default_rng(seed)
    updates = rng.standard_normal((rounds, institutions, folds, 5))
    return updates, rng.uniform(0, 4, (rounds, institutions, folds)), rng.integers(1, 9, (institutions, folds))


def as_sets(clusters):
    return {frozenset(np.flatnonzero(clusters == number).tolist()) for number in np.unique(clusters)}


@pytest.mark.parametrize("plus", [False, True], ids=["gcfl", "gcfl+"])
@settings(max_examples=40, deadline=None)
@given(st.integers(3, 7), st.integers(0, 2**32 - 1))
def test_the_plain_version_has_the_same_clusters_and_models(plus, institutions, seed):
    updates, norms, samples = draws(institutions, 2, seed)
    server, models = trained(updates, norms, samples, GradientNorms(LENGTH) if plus else UpdateCosine())
    for fold in range(2):
        expected = train(
            [0.0] * 5,
            updates[:, :, fold].tolist(),
            samples[:, fold].tolist(),
            EPS["eps1"],
            EPS["eps2"],
            FIRST,
            norms[:, :, fold].tolist() if plus else None,
            LENGTH,
        )
        for number, (clusters, weights) in enumerate(expected):
            assert as_sets(server.clusters[number, fold]) == clusters
            np.testing.assert_allclose(models[number, :, fold], weights, atol=1e-12)


@pytest.mark.parametrize("clustering", ["minimum_cut", "balanced"])
@pytest.mark.parametrize("similarity", [UpdateCosine, lambda: GradientNorms(LENGTH)], ids=["gcfl", "gcfl+"])
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(0, 0.6))
def test_clusters_are_partitions_ever_finer_with_one_model_each(similarity, clustering, institutions, seed, absent):
    updates, norms, samples = draws(institutions, 2, seed)
    samples *= np.random.default_rng(seed + 1).random(samples.shape) >= absent
    updates *= samples[:, :, None] > 0
    server, models = trained(updates, norms, samples, similarity(), clustering=clustering)
    found = server.clusters
    assert found.shape == (7, 2, institutions)
    assert (found[:FIRST] == 0).all()
    for fold in range(2):
        for number in range(7):
            now, before = found[number, fold], found[max(number - 1, 0), fold]
            assert np.unique(now).tolist() == list(range(now.max() + 1))
            parents = {(child, parent) for child, parent in zip(now, before, strict=True)}
            assert len(parents) == now.max() + 1, "every cluster lies in one cluster of the round before"
            for cluster in range(now.max() + 1):
                own = models[number, now == cluster, fold]
                assert (own == own[0]).all()


def test_the_draws_cut_clusters():
    """The tests above say something: cuts happen, several in one fold, and in one fold without the other."""
    numbers = []
    for seed in range(10):
        updates, norms, samples = draws(7, 2, seed)
        server, _ = trained(updates, norms, samples, UpdateCosine())
        numbers.append(server.clusters[-1].max(axis=1) + 1)
    assert np.max(numbers) >= 3
    assert any(one != other for one, other in numbers)
