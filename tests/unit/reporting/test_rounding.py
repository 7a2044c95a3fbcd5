"""One number is printed one way."""

import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from brainfed.reporting import p_short, p_value, rounded, short, signed, significant_digits
from brainfed.reporting._rounding import digits_of


def test_the_order_of_an_addition_changes_no_digit():
    """The mean of 0.525 and 0.55 is a half (0.5375) whose last bit depends on who adds up, and how."""
    values = [0.5, 0.55, 0.525, 0.575]
    means = [sum(order) / 4 for order in itertools.permutations(values)] + [
        float(np.mean(values)),
        math.fsum(values) / 4,
    ]
    assert {rounded(mean) for mean in means} == {"0.538"}
    assert {rounded(value) for value in (math.nextafter(0.5375, 0), 0.5375, math.nextafter(0.5375, 1))} == {"0.538"}


@pytest.mark.parametrize("thousandths", range(0, 1000, 7))
def test_a_half_goes_away_from_zero_whatever_the_digit_before(thousandths):
    """`format` sends halves to where the binary number happens to lie: 0.0625 down and 0.0635 up."""
    value = thousandths / 1000 + 0.0005
    assert rounded(value) == f"{(thousandths + 1) / 1000:.3f}"
    assert rounded(-value) == f"\u2212{(thousandths + 1) / 1000:.3f}"


def test_nothing_is_rounded_twice():
    """0.5349 is 0.53 with two decimals, though it is 0.535 with three."""
    assert (rounded(0.5349), rounded(0.5349, 2)) == ("0.535", "0.53")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(-0.0004, 3, "0.000"), (0.0, 3, "0.000"), (-0.25, 2, "\u22120.25"), (0.1, 3, "+0.100"), (math.nan, 3, "\u2013")],
)
def test_a_number_that_rounds_to_zero_has_no_sign(value, digits, text):
    assert signed(value, digits) == text


def test_two_decimals_where_the_interval_is_wide():
    assert [digits_of(0.60, 0.70), digits_of(0.600, 0.615), digits_of(math.nan, math.nan)] == [2, 3, 2]


@pytest.mark.parametrize(
    ("p", "text"), [(0.04996, ".04996"), (0.0496, ".0496"), (0.0495, ".0495"), (0.0494, ".049"), (0.05, ".050")]
)
def test_a_p_below_the_limit_never_reads_as_the_limit(p, text):
    assert (p_short(p), p_short(0.05 - 1e-12)) == (text, "< .05")


def test_a_bound_beside_zero_never_reads_as_zero():
    assert [digits_of(0.001, 0.05), digits_of(-0.05, -0.0004), digits_of(0.0001, 0.0004)] == [3, 4, 4]
    assert [digits_of(-0.001, 0.05), digits_of(0.0, 0.05), digits_of(0.02, 0.05)] == [2, 2, 2]


def test_p_is_never_nought_and_never_one():
    assert [p_short(p) for p in (0.0, 0.0005, 0.032, 0.9876, 0.9987, 1.0)] == [
        "< .001", "< .001", ".032", ".988", "> .99", "> .99"
    ]  # fmt: skip
    assert p_value(0.9987) == "p\u00a0>\u00a0.99"
    assert [short(0.05), short(-0.05), short(1.0)] == [".050", "\u2212.050", "1.000"]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(64.94, 3, "64.9"), (64.95, 3, "65"), (4.0, 3, "4"), (0.00449, 2, "0.0045"), (1234.5, 2, "1235"),
     (-0.25, 1, "\u22120.3"), (0.0, 3, "0"), (math.nan, 3, "\u2013"), (math.inf, 3, "\u2013")],
)  # fmt: skip
def test_significant_digits_have_no_zeros_at_the_end(value, digits, text):
    assert significant_digits(value, digits) == text


def test_no_other_code_of_the_report_rounds_a_number_for_a_reader():
    """A decimal format in an f-string or a template rounds halves to where the binary number lies."""
    library = Path(__file__).parents[3] / "workflow" / "brainfed"
    written = [*library.glob("reporting/**/*.*"), *library.glob("papers/**/*.*")]
    found = [
        f"{path.name}: {line.strip()}"
        for path in written
        if path.suffix in {".py", ".j2"} and path.name != "_rounding.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(r":[+]?\.\d[fge]\}|%\.\d[fge]", line) and "write_tsv" not in line
    ]
    assert found == ['_connectivity.py: return max(float(f"{np.quantile(np.abs(values), 0.995):.1g}"), 0.01)']
