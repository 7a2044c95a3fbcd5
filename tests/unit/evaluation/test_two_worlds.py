"""The statistics of benchmarks/upload_leakage.py: known answers, and intervals that hold."""

import sys
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest, norm

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from two_worlds import (
    allowed_area,
    allowed_true_positives,
    area,
    clopper_pearson,
    epsilon_bound,
    gaussian_area,
    true_positives,
)


def responses(epsilon, trials, random):
    """Randomised response, which is epsilon-private and no better: bits without and with the subject."""
    truth = exp(epsilon) / (1 + exp(epsilon))
    return tuple((random.random(trials) < share).astype(float) for share in (1 - truth, truth))


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (5, 10), (10, 10), (1, 500), (499, 500)])
def test_clopper_pearson_is_the_exact_interval(count, trials):
    expected = binomtest(count, trials).proportion_ci(method="exact")
    np.testing.assert_allclose(clopper_pearson(count, trials), [expected.low, expected.high], atol=1e-12)


def test_area_counts_pairs():
    """Of four pairs three are in order and one is equal."""
    assert area(np.array([0.0, 1.0]), np.array([1.0, 2.0]))[0] == 0.875
    assert area(np.arange(5.0), np.arange(5.0))[0] == 0.5
    assert area(np.zeros(3), np.ones(3)) == (1.0, 1.0, 1.0)


def test_the_interval_of_an_area_covers_the_gaussian_one():
    random = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        _, low, high = area(random.normal(size=60), random.normal(1.0, size=60))
        held += low <= gaussian_area(1.0) <= high
    # Standard error 1.1 points.
    assert 0.91 <= held / 400 <= 0.99


def test_true_positives_at_one_percent():
    """Of 200 without the subject two may lie above the threshold, 197."""
    without = np.arange(200.0)
    found, low, high = true_positives(without, np.array([197.0, 198.0, 300.0, 0.0]))
    assert found == 0.5
    least, most = clopper_pearson(2, 4)
    assert low <= least < most <= high and true_positives(np.zeros(50), np.zeros(50))[0] == 0


def test_the_interval_of_true_positives_counts_the_chance_of_the_threshold():
    random, truth = np.random.default_rng(4), float(norm.sf(norm.isf(0.01) - 1))
    found = [true_positives(random.normal(size=300), random.normal(1.0, size=300))[1:] for _ in range(100)]
    # Standard error 2.2 points.
    assert np.mean([low <= truth <= high for low, high in found]) >= 0.9


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_bound_comes_close_to_the_epsilon_of_randomised_response(epsilon):
    found = epsilon_bound(*responses(epsilon, 100_000, np.random.default_rng(1)), 0.0)
    assert 0.9 * epsilon < found < epsilon


def test_the_bound_rarely_exceeds_epsilon():
    random = np.random.default_rng(2)
    above = [epsilon_bound(*responses(1.0, 100, random), 0.0) > 1.0 for _ in range(300)]
    assert np.mean(above) < 0.07


def test_a_perfect_test_gives_what_the_trials_allow():
    """250 of 250 and 0 of 250 in the judging half."""
    low, high = clopper_pearson(250, 250)[0], clopper_pearson(0, 250)[1]
    assert epsilon_bound(np.zeros(500), np.ones(500), 0.0) == pytest.approx(log(low / high))
    assert log(low / high) > 4 and epsilon_bound(np.zeros(500), np.zeros(500), 0.0) == 0


def test_a_test_that_misses_nobody_bounds_epsilon_too():
    """No false negatives, half of all taken for members: 1 - FPR = 0.5 against FNR = 0."""
    without, within = np.arange(400) // 2 % 2 * 1.0, np.ones(400)
    found = epsilon_bound(without, within, 0.0)
    assert found == pytest.approx(log(clopper_pearson(100, 200)[0] / clopper_pearson(0, 200)[1]))


def test_what_epsilon_allows():
    assert float(allowed_true_positives(2.0, 0.0)) == pytest.approx(0.01 * exp(2))
    assert float(allowed_true_positives(2.0, 1e-3)) == pytest.approx(0.01 * exp(2) + 1e-3)
    assert float(allowed_true_positives(np.inf, 1e-5)) == 1
    assert allowed_area(0.0, 0.0) == pytest.approx(0.5)
    assert allowed_area(2.0, 0.0) == pytest.approx(exp(2) / (1 + exp(2)))
    assert allowed_area(np.inf, 1e-5) == 1


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.01), (2.0, 1e-5), (10.0, 0.2)])
def test_the_allowed_area_lies_under_the_allowed_curve(epsilon, delta):
    false = np.linspace(0, 1, 200_001)
    under = np.trapezoid(allowed_true_positives(epsilon, delta, false), false)
    assert allowed_area(epsilon, delta) == pytest.approx(under, abs=1e-5)


def test_randomised_response_is_as_good_a_test_as_epsilon_allows():
    found = area(*responses(2.0, 100_000, np.random.default_rng(3)))
    assert found[1] <= allowed_area(2.0, 0.0) <= found[2]
