"""What GCFL and GCFL+ weigh and cut, and that with any updates the plain version finds the same clusters and models."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation import Message
from brainfed.federation.strategies import GCFL, GradientNorms, UpdateCosine
from brainfed.federation.strategies._gcfl import CUTS, GRADIENT_NORM, balanced, dtw, minimum_cut, split
from reference.clustered_federation import cut_sum, recursive_dtw, smallest_cut, train

NUMBERS = st.lists(st.floats(0, 100), min_size=1, max_size=7)


@settings(max_examples=200, deadline=None)
@given(NUMBERS, NUMBERS)
def test_dtw_is_the_recursion(first, second):
    assert dtw(first, second) == pytest.approx(recursive_dtw(tuple(first), tuple(second)))
    assert dtw(first, second) == pytest.approx(dtw(second, first))
    assert dtw(first, first) == 0


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [([1.0], [4.0], 3.0), ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0], 0.0), ([0.0, 3.0], [0.0, 7.0, 3.0], 4.0)],
)
def test_dtw_by_hand(first, second, expected):
    assert dtw(first, second) == pytest.approx(expected)


def test_dtw_of_an_empty_sequence_is_infinite():
    assert dtw([], [1.0]) == dtw([1.0], []) == float("inf")


def test_cosines_are_shifted_clipped_and_zero_for_no_update():
    updates = torch.tensor([[2.0, 0.0], [0.0, 5.0], [-3.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    found = UpdateCosine().weights(0, np.arange(4), updates)
    expected = [[2, 1, 0, 1], [1, 2, 1, 1], [0, 1, 2, 1], [1, 1, 1, 1]]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    same = torch.full((3, 7), 0.1, dtype=torch.float64)
    assert (UpdateCosine().weights(0, np.arange(3), same * torch.tensor([[1.0], [-1.0], [-1.0]])) >= 0).all()


def replies(norms, samples):
    """One message an institution; norms and samples are (M, F)."""
    return [
        Message({GRADIENT_NORM: torch.tensor(own)}, torch.tensor(count))
        for own, count in zip(norms, samples, strict=True)
    ]


def test_sequences_have_the_last_rounds_and_start_again_after_a_cut_in_their_fold_alone():
    similarity, samples = GradientNorms(2), [[1, 1]] * 3
    for norms in ([[9.0, 9.0], [0.0, 0.0], [5.0, 5.0]], [[1.0, 1.0], [1.0, 1.0], [4.0, 4.0]], [[1.0, 2.0]] * 3):
        similarity.read(replies(norms, samples))
    members, none = np.arange(3), torch.empty(3, 0)
    np.testing.assert_allclose(similarity.weights(0, members, none), [[3, 3, 0], [3, 3, 0], [0, 0, 3]])
    similarity.forget(0)
    similarity.read(replies([[1.0, 2.0], [5.0, 2.0], [7.0, 2.0]], samples))
    np.testing.assert_allclose(similarity.weights(0, members, none), [[6, 2, 0], [2, 6, 4], [0, 4, 6]])
    np.testing.assert_allclose(similarity.weights(1, members, none), np.zeros((3, 3)))


@pytest.mark.parametrize("norm", [np.nan, 0.0])
def test_the_norm_of_an_institution_without_samples_is_passed_over(norm):
    similarity = GradientNorms(3)
    similarity.read(replies([[1.0], [norm], [3.0]], [[1], [0], [1]]))
    similarity.read(replies([[1.0], [3.0], [3.0]], [[1], [1], [1]]))
    found = similarity.weights(0, np.arange(3), torch.empty(3, 0))
    far = 8**0.5
    np.testing.assert_allclose(found, [[far, 0, 0], [0, far, far], [0, far, far]])


SEEDS = st.integers(0, 2**32 - 1)


def weights_of(size, seed, low=0.0, high=2.0):
    """(m, m) symmetric."""
    upper = np.triu(np.random.default_rng(seed).uniform(low, high, (size, size)), 1)
    return upper + upper.T


def parts(mask):
    return {frozenset(np.flatnonzero(mask).tolist()), frozenset(np.flatnonzero(~mask).tolist())}


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 8), SEEDS)
def test_the_minimum_cut_is_the_smallest_of_all_cuts(size, seed):
    weights = weights_of(size, seed)
    pairs = {pair: weights[pair] for pair in combinations(range(size), 2)}
    assert parts(minimum_cut(weights)) == set(smallest_cut(frozenset(range(size)), pairs))


@settings(max_examples=60, deadline=None)
@given(st.integers(3, 8), SEEDS, st.floats(0, 1))
def test_a_cut_has_two_parts_also_where_weights_are_zero(size, seed, share):
    rng = np.random.default_rng(seed)
    kept = np.triu(rng.random((size, size)) < share, 1)
    weights = weights_of(size, seed) * (kept + kept.T)
    pairs = {pair: weights[pair] for pair in combinations(range(size), 2)}
    for cut in CUTS.values():
        assert 0 < cut(weights).sum() < size
    smallest = cut_sum(smallest_cut(frozenset(range(size)), pairs)[0], pairs)
    found = frozenset(np.flatnonzero(minimum_cut(weights)).tolist())
    assert cut_sum(found, pairs) == pytest.approx(smallest)


@pytest.mark.parametrize("seed", range(5))
def test_near_equal_weights_lose_one_institution_to_the_minimum_cut_and_a_third_to_the_balanced(seed):
    weights = weights_of(30, seed, 1.0, 1.02)
    mask = minimum_cut(weights)
    assert min(mask.sum(), (~mask).sum()) == 1
    mask = balanced(weights)
    assert min(mask.sum(), (~mask).sum()) >= 10


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_two_blocks_are_cut_apart(cut):
    block = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    weights = np.where(block[:, None] == block, 1.9, 0.1)
    assert parts(cut(weights)) == parts(block == 1)
    assert cut(weights).tobytes() == cut(weights).tobytes()


def test_the_part_with_the_first_institution_keeps_the_number():
    clusters, counts = np.array([0, 1, 1, 0, 1]), np.ones(5, dtype=np.int64)
    for one, other in (([1], [2, 4]), ([2, 4], [1])):
        assert split(clusters, np.array(one), np.array(other), counts).tolist() == [0, 1, 2, 0, 2]


@pytest.mark.parametrize(("counts", "expected"), [([5, 0, 9, 6], 1), ([9, 0, 5, 4], 0), ([9, 0, 5, 5], 1)])
def test_institutions_without_samples_go_with_the_part_of_more_samples(counts, expected):
    found = split(np.zeros(4, dtype=np.int64), np.array([0]), np.array([2, 3]), np.array(counts))
    assert found.tolist() == [0, expected, 1, 1]


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
