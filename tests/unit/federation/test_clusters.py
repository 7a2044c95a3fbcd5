"""Two ways to cut a cluster, and the partition after a cut."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation.strategies.clusters import CUTS, balanced, minimum_cut, split
from reference.clustered_federation import cut_sum, smallest_cut

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
