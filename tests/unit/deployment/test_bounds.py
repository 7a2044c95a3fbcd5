"""The bounds of numbers that are added up unseen."""

import numpy as np
import pytest

from brainfed.deployment.flower.secure.fixed_point import BITS, decode, encode
from brainfed.federation.apart.sealed import SMALLEST, bound, is_bound

LARGEST_BOUND = 2.0**1016


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(1e-30, SMALLEST), (0.5, 1.0), (1.0, 256.0), (255.9, 256.0), (-256.0, 65536.0)],
)
def test_a_bound_is_the_power_of_256_above_all_magnitudes(largest, expected):
    assert bound(np.array([0.0, largest])) == expected


def test_numbers_beyond_the_largest_bound_count_as_not_finite():
    """2^1016 is the last power of 256 among the real numbers; the next one would be 2^1024."""
    below = np.nextafter(LARGEST_BOUND, 0.0)
    assert bound(np.array([below])) == LARGEST_BOUND
    for value in (LARGEST_BOUND, 1e306, np.finfo(np.float64).max, np.inf, np.nan):
        assert bound(np.array([value])) is None


def test_only_powers_of_256_are_bounds():
    for allowed in (SMALLEST, 1.0, 256.0, LARGEST_BOUND):
        assert is_bound(allowed)
    for other in (SMALLEST / 256, 0.0, -256.0, 2.0, 257.0, 2.0**1020, np.inf, np.nan, "256", None, True):
        assert not is_bound(other)


def test_a_number_is_off_by_half_a_step_and_as_often_up_as_down():
    drawn = np.random.default_rng(0).normal(size=100_000)
    off = (decode(encode(drawn, 256.0, "weights"), 256.0) - drawn) * 2.0**BITS / 256.0
    assert np.abs(off).max() <= 0.5
    # A sum over many sites would drift where numbers are cut towards zero.
    assert abs((off * np.sign(drawn)).mean()) < 0.01
