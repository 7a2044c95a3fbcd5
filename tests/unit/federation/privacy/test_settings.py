"""Limits of the settings of privacy, in sentences."""

import subprocess
import sys

import pytest

from brainfed.federation.privacy.settings import PrivacySettings
from brainfed.runtime.errors import UserError


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
    code = "import sys, brainfed.federation.privacy.settings; print({'torch', 'opacus', 'numpy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
