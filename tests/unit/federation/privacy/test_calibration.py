"""The noise multiplier: formulas as printed, and the least noise that keeps the whole training within epsilon."""

from math import log, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opacus.accountants.utils import get_noise_multiplier

from brainfed.federation.privacy.accounting import epsilon_spent
from brainfed.federation.privacy.calibration import PRECISION, noise_multiplier
from brainfed.federation.privacy.settings import PrivacySettings
from brainfed.runtime.errors import UserError


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
