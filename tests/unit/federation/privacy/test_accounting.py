"""Epsilon spent: Opacus' numbers, the closed form of one release, monotone in noise, steps, sampling and delta."""

from math import exp, inf, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant
from scipy.optimize import brentq
from scipy.stats import norm

from brainfed.federation.privacy.accounting import EPSILON_ERROR, ERROR_SHARE, SMALL, SMALL_ERROR, epsilon_spent
from brainfed.federation.privacy.prv import quick_bound

DELTA = 1e-5


def analytic_gaussian(multiplier, delta=DELTA):
    """Epsilon of one release (Balle & Wang 2018, Theorem 8): Phi(a - eps s) - e^eps Phi(-a - eps s) = delta."""

    def excess(epsilon):
        half = 1 / (2 * multiplier)
        return norm.cdf(half - epsilon * multiplier) - exp(epsilon + norm.logcdf(-half - epsilon * multiplier)) - delta

    return brentq(excess, 0, 500, xtol=1e-10)


def error_of(multiplier, rate, steps):
    """The stated error of the bound, half of what it may lie above the true epsilon."""
    return max(EPSILON_ERROR, ERROR_SHARE * quick_bound([(multiplier, rate, steps)], DELTA))


@pytest.mark.parametrize("multiplier", [0.15, 0.3, 0.5, 1, 2, 3.73, 5, 20, 60])
def test_one_release_of_everybody_spends_the_closed_form(multiplier):
    expected = analytic_gaussian(multiplier)
    error = error_of(multiplier, 1.0, 1) if expected > SMALL else SMALL_ERROR
    assert expected <= epsilon_spent(multiplier, 1.0, 1, DELTA) <= expected + 2 * error


@pytest.mark.parametrize(("multiplier", "steps"), [(1, 4), (2, 100), (30, 50)])
def test_releases_of_everybody_spend_what_one_with_less_noise_does(multiplier, steps):
    expected = analytic_gaussian(multiplier / sqrt(steps))
    assert expected <= epsilon_spent(multiplier, 1.0, steps, DELTA) <= expected + 2 * error_of(multiplier, 1.0, steps)


@pytest.mark.parametrize(("multiplier", "rate", "steps"), [(1.0, 0.2, 100), (0.7, 0.16, 50), (4.0, 0.02, 1000)])
def test_it_is_opacus_bound_step_by_step(multiplier, rate, steps):
    accountant = PRVAccountant()
    for _ in range(steps):
        accountant.step(noise_multiplier=multiplier, sample_rate=rate)
    found, error = epsilon_spent(multiplier, rate, steps, DELTA), error_of(multiplier, rate, steps)
    assert found == pytest.approx(accountant.get_epsilon(DELTA, eps_error=error), abs=1e-5)


def test_beyond_any_meaning_renyi_accounting_answers_at_once():
    accountant = RDPAccountant()
    accountant.history = [(0.1, 0.5, 1000)]
    found = epsilon_spent(0.1, 0.5, 1000, DELTA)
    assert found == accountant.get_epsilon(DELTA)
    assert found > 1000


def test_without_steps_nothing_is_spent_and_without_noise_everything():
    assert epsilon_spent(1.0, 0.2, 0, DELTA) == 0
    assert epsilon_spent(0.0, 0.2, 1, DELTA) == inf


@settings(max_examples=6, deadline=None)
@given(
    multiplier=st.floats(0.4, 10),
    rate=st.floats(0.02, 1),
    steps=st.integers(1, 50),
    delta=st.sampled_from([1e-7, 1e-5, 1e-3]),
    more=st.floats(1.05, 3),
)
def test_it_falls_with_noise_and_delta_and_rises_with_steps_and_sampling(multiplier, rate, steps, delta, more):
    spent = epsilon_spent(multiplier, rate, steps, delta)
    assert 0 < spent < inf
    # The bound's own error may hide a small difference.
    slack = 2 * max(EPSILON_ERROR, ERROR_SHARE * spent * 2)
    assert epsilon_spent(multiplier * more, rate, steps, delta) < spent + slack
    assert epsilon_spent(multiplier, rate, int(steps * more) + 1, delta) > spent - slack
    assert epsilon_spent(multiplier, min(rate * more, 1.0), steps, delta) > spent - slack
    assert epsilon_spent(multiplier, rate, steps, min(delta * more, 0.5)) < spent + slack
