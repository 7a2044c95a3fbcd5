"""The weights of GCFL and GCFL+, against their formulas."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.federation.message import Message
from brainfed.federation.strategies.similarity import GRADIENT_NORM, GradientNorms, UpdateCosine, dtw
from reference.clustered_federation import recursive_dtw

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
