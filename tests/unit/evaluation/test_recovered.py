"""The share of a gap that a method recovers, and Fieller's interval, against the test that it inverts."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from brainfed.evaluation import corrected_t_test, recovered_share

RATIO = 0.25


def test_a_share_by_hand():
    """Gaps of .19, .21 and .20, half of each gained: one half, whose interval has no width."""
    lower = np.array([0.5, 0.6, 0.55])
    upper = lower + np.array([0.19, 0.21, 0.2])
    found = recovered_share(lower + (upper - lower) / 2, lower, upper, RATIO)
    assert (found.share, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5), abs=1e-6)


@given(st.integers(0, 10_000))
def test_the_bounds_are_the_shares_that_the_corrected_test_just_refuses(seed):
    random = np.random.default_rng(seed)
    lower = 0.6 + 0.03 * random.standard_normal(10)
    upper = lower + 0.15 + 0.03 * random.standard_normal(10)
    method = lower + 0.05 + 0.03 * random.standard_normal(10)
    found = recovered_share(method, lower, upper, RATIO)
    assume(np.isfinite(found.share))
    for bound in (found.low, found.high):
        test = corrected_t_test(method - lower - bound * (upper - lower), RATIO)
        assert test.p == pytest.approx(0.05, abs=1e-6)
    assert found.low <= found.share <= found.high


@given(st.integers(0, 10_000))
def test_no_share_where_the_gap_may_be_nothing(seed):
    random = np.random.default_rng(seed)
    lower = 0.6 + 0.05 * random.standard_normal(10)
    upper = lower + 0.04 + 0.05 * random.standard_normal(10)
    gap = corrected_t_test(upper - lower, RATIO)
    assert np.isfinite(recovered_share(lower, lower, upper, RATIO).share) == (gap.ci_low > 0 or gap.ci_high < 0)


def test_pooled_data_recovers_all_and_the_cut_graph_nothing():
    random = np.random.default_rng(1)
    lower = 0.6 + 0.03 * random.standard_normal(10)
    upper = lower + 0.15 + 0.02 * random.standard_normal(10)
    none, everything = (recovered_share(method, lower, upper, RATIO) for method in (lower, upper))
    assert (none.share, none.low, none.high) == pytest.approx((0, 0, 0), abs=1e-7)
    assert (everything.share, everything.low, everything.high) == pytest.approx((1, 1, 1), abs=1e-6)


def test_one_run_has_no_share():
    assert np.isnan(recovered_share(np.array([0.7]), np.array([0.6]), np.array([0.8]), RATIO).share)


def test_the_interval_holds_the_true_share_as_often_as_it_says():
    """Independent runs, so the plain variance is right (ratio 0): 95 % of 2,000 intervals, within binomial error."""
    random = np.random.default_rng(3)
    held = 0
    for _ in range(2000):
        lower = 0.6 + 0.02 * random.standard_normal(10)
        upper = 0.75 + 0.02 * random.standard_normal(10)
        method = 0.66 + 0.02 * random.standard_normal(10)
        found = recovered_share(method, lower, upper, 0.0)
        held += found.low <= 0.4 <= found.high
    assert stats.binomtest(held, 2000, 0.95).pvalue > 0.01
