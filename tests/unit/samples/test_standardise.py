import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brainfed.samples import standardise
from brainfed.samples.standardise import training_moments


def test_moments_by_hand():
    features = np.array([[1.0, 5.0], [3.0, 5.0], [100.0, 7.0]], dtype=np.float32)
    mean, deviation = training_moments(features, np.array([True, True, False]))
    assert mean.tolist() == [2.0, 5.0]
    assert deviation.tolist() == [1.0, np.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_column_is_no_column_whatever_its_rounding(dtype):
    features = np.full((7, 1), 0.1, dtype=dtype)
    _, deviation = training_moments(features, np.ones(7, dtype=bool))
    assert deviation.tolist() == [np.inf]


@pytest.mark.parametrize("entries", [1, 600])
def test_blocks_of_columns_give_the_same_bits(entries, monkeypatch):
    features = np.random.default_rng(1).standard_normal((40, 33)).astype(np.float32)
    features[:, 5] = 1
    rows = np.arange(40) % 4 > 0
    expected = training_moments(features, rows)
    monkeypatch.setattr(standardise, "BLOCK_ENTRIES", entries)
    for found, known in zip(training_moments(features, rows), expected, strict=True):
        assert found.tobytes() == known.tobytes()


def test_accumulates_float32_in_float64():
    features = (10_000 + np.random.default_rng(0).standard_normal((5000, 2))).astype(np.float32)
    mean, deviation = training_moments(features, np.ones(5000, dtype=bool))
    exact = features.astype(np.float64)
    assert mean.dtype == deviation.dtype == np.float64
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(deviation, exact.std(axis=0), rtol=1e-12)


@given(
    arrays(np.float64, (6, 3), elements=st.integers(-50, 50).map(float)),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_z_scores_of_training_rows_have_mean_zero_and_deviation_one_or_zero(features, chosen):
    rows = np.array(chosen)
    rows[0] = True
    mean, deviation = training_moments(features, rows)
    scores = (features[rows] - mean) / deviation
    np.testing.assert_allclose(scores.mean(axis=0), 0, atol=1e-12)
    constant = np.ptp(features[rows], axis=0) == 0
    np.testing.assert_allclose(scores.std(axis=0), np.where(constant, 0, 1), atol=1e-12)


def test_rows_that_are_not_chosen_change_nothing():
    features = np.random.default_rng(1).standard_normal((8, 4))
    rows = np.arange(8) < 5
    other = np.where(rows[:, None], features, 1e6)
    for before, after in zip(training_moments(features, rows), training_moments(other, rows), strict=True):
        assert before.tobytes() == after.tobytes()


def test_no_training_subject_has_no_moments():
    with pytest.raises(ValueError, match="found none"):
        training_moments(np.zeros((3, 2)), np.zeros(3, dtype=bool))
