"""Limits of the settings of privacy, the noise that a budget takes, and the epsilon that is spent."""

import subprocess
import sys
from math import exp, inf, log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants import PRVAccountant, RDPAccountant
from opacus.accountants.utils import get_noise_multiplier
from scipy.optimize import brentq
from scipy.stats import norm

from brainfed.federation import PrivacySettings, _prv, epsilon_spent, noise_multiplier
from brainfed.federation._accounting import EPSILON_ERROR, ERROR_SHARE, PRECISION, SMALL, SMALL_ERROR
from brainfed.federation._prv import prv_accountant, quick_bound
from brainfed.runtime import UserError


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon: expected a number above 0, found 0; privacy: none spends none"),
        ({"epsilon": -1.0}, "epsilon: expected a number above 0, found -1"),
        ({"delta": 0.0}, "delta: expected a number from 1e-12 to below 1, found 0"),
        ({"delta": -1e-5}, "delta: expected a number from 1e-12 to below 1, found -1e-05"),
        ({"delta": 1e-15}, "delta: expected a number from 1e-12 to below 1, found 1e-15"),
        ({"delta": 1.0}, "delta: expected a number from 1e-12 to below 1, found 1"),
        ({"clip": 0.0}, "clip: expected a norm above 0, found 0; privacy: none trains without clipping"),
        ({"clip": -2.0}, "clip: expected a norm above 0, found -2"),
        ({"epsilon": float("inf")}, "epsilon: expected a number above 0, found inf"),
        ({"clip": float("inf")}, "clip: expected a norm above 0, found inf"),
        ({"epsilon": float("nan")}, "epsilon: expected a number above 0, found nan"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        PrivacySettings("accountant", **given)


def test_delta_is_below_one_over_the_training_subjects():
    settings = PrivacySettings("accountant", delta=0.01)
    settings.require_enough("NYU", 99)
    settings.require_enough("NYU", 0)
    with pytest.raises(UserError, match=r"delta of institution NYU: expected less than 1 / 100 training subjects"):
        settings.require_enough("NYU", 100)
    PrivacySettings("none", delta=0.01).require_enough("NYU", 100)


def test_a_single_subject_of_an_institution_is_refused():
    settings = PrivacySettings("accountant")
    settings.require_enough("NYU", 2)
    with pytest.raises(UserError, match=r"institution NYU: expected two or more training subjects, found 1"):
        settings.require_enough("NYU", 1)
    PrivacySettings("none").require_enough("NYU", 1)


def test_the_settings_import_neither_torch_nor_opacus():
    code = "import sys, brainfed.federation._settings; print({'torch', 'opacus', 'numpy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_the_papers_formula_has_epsilon_inside_the_root():
    # 2 log(125000) = 23.472; / 10 = 2.3472; its root is 1.5321.
    assert noise_multiplier(PrivacySettings("paper", 10), 0.2, 100) == pytest.approx(1.5321, abs=1e-4)


def test_the_classical_formula_has_epsilon_outside():
    assert noise_multiplier(PrivacySettings("classical", 10), 0.2, 100) == pytest.approx(0.48448, abs=1e-5)
    assert noise_multiplier(PrivacySettings("classical", 0.5, 1e-3), 1.0, 1) == sqrt(2 * log(1250)) / 0.5


def test_the_formulas_agree_at_epsilon_one():
    found = {noise_multiplier(PrivacySettings(name, 1.0), 1.0, 1) for name in ("paper", "classical")}
    assert len(found) == 1


def test_without_privacy_there_is_no_noise():
    assert noise_multiplier(PrivacySettings(), 0.2, 100) == 0


@settings(max_examples=5, deadline=None)
@given(
    epsilon=st.floats(0.05, 60),
    delta=st.sampled_from([1e-6, 1e-5, 1e-3]),
    rate=st.floats(0.02, 1),
    steps=st.integers(1, 50),
)
def test_the_accountants_noise_is_the_least_that_keeps_epsilon(epsilon, delta, rate, steps):
    found = noise_multiplier(PrivacySettings("accountant", epsilon, delta), rate, steps)
    assert epsilon_spent(found, rate, steps, delta) <= epsilon
    assert epsilon_spent(found / (1 + 2 * PRECISION), rate, steps, delta) > epsilon


@pytest.mark.parametrize(
    "epsilon", [2.0, pytest.param(10.0, marks=pytest.mark.full("Opacus searches for six seconds."))]
)
def test_it_is_opacus_multiplier_within_opacus_tolerance(epsilon):
    # Theirs, and the difference of the two bounds' stated errors.
    tolerance = 0.03
    theirs = get_noise_multiplier(
        target_epsilon=epsilon,
        target_delta=1e-5,
        sample_rate=0.2,
        steps=20,
        accountant="prv",
        epsilon_tolerance=0.01,
    )
    ours = noise_multiplier(PrivacySettings("accountant", epsilon), 0.2, 20)
    assert ours == pytest.approx(theirs, rel=0.005)
    assert epsilon_spent(theirs, 0.2, 20, 1e-5) >= epsilon - tolerance
    assert epsilon_spent(ours, 0.2, 20, 1e-5) >= epsilon - tolerance


def test_more_steps_need_more_noise():
    found = [noise_multiplier(PrivacySettings("accountant", 5.0), 0.2, steps) for steps in (1, 10, 100)]
    assert found == sorted(found)
    assert found[2] > 1.5 * found[0]


@pytest.mark.parametrize("epsilon", [1e3, 1e6])
def test_a_huge_budget_has_an_answer(epsilon):
    found = noise_multiplier(PrivacySettings("accountant", epsilon), 0.2, 10)
    assert 0 < found < 0.2
    assert epsilon_spent(found, 0.2, 10, 1e-5) <= epsilon


def test_a_budget_that_no_noise_keeps_is_refused():
    with pytest.raises(UserError, match=r"epsilon: expected a budget that 2 steps can keep .*, found 1e-05; raise"):
        noise_multiplier(PrivacySettings("accountant", 1e-5), 0.2, 2)


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


def test_an_opacus_with_another_grid_has_the_same_epsilon(monkeypatch, capsys):
    history = [(1.1, 0.1, 50)]
    quick = prv_accountant()
    quick.history = history
    monkeypatch.setattr(PRVAccountant, "_get_domain", lambda self, prvs, eps_error: None)
    _prv._bounds_its_grid.cache_clear()
    own = prv_accountant()
    monkeypatch.undo()
    _prv._bounds_its_grid.cache_clear()
    assert type(own) is PRVAccountant
    said = capsys.readouterr().err
    assert (
        said.startswith("Opacus ") and "found self, prvs, eps_error; an epsilon takes longer. requirements.lock" in said
    )
    own.history = history
    assert own.get_epsilon(1e-3) == pytest.approx(quick.get_epsilon(1e-3), abs=1e-5)
