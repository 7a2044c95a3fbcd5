"""How many generated nodes each subject gets: rounding, the most of one, the cap on all."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.inpainting._fusing import allot

counts = st.lists(st.floats(-2, 30), min_size=1, max_size=40).map(np.array)
roundings = st.sampled_from(["round", "truncate"])


def given_to(*count, rounding="round", max_generated=10, cap=None):
    tie_order = np.arange(len(count))
    return allot(
        np.array(count, dtype=float), rounding=rounding, max_generated=max_generated, cap=cap, tie_order=tie_order
    ).tolist()


def test_rounding_and_truncating():
    assert given_to(0.4, 0.6, 1.5, 2.5, 3.7) == [0, 1, 2, 2, 4]
    assert given_to(0.4, 0.6, 1.5, 2.5, 3.7, rounding="truncate") == [0, 0, 1, 2, 3]


def test_numbers_are_between_0_and_max_generated():
    assert given_to(-3.2, -0.3, 4.0, 99.0, max_generated=5) == [0, 0, 4, 5]


def test_a_cap_above_the_sum_changes_nothing():
    # 0.5 * 4 subjects = 2 nodes.
    assert given_to(1, 0, 1, 0, cap=0.5) == [1, 0, 1, 0]


def test_one_factor_scales_all_and_the_largest_remainders_get_the_rest():
    # 5 + 3 + 1 + 1 = 10 wanted, 4 allowed: shares 2.0, 1.2, 0.4, 0.4; the one left goes to the first 0.4.
    assert given_to(5, 3, 1, 1, cap=1.0) == [2, 1, 1, 0]


def test_ties_of_remainders_go_to_the_larger_prediction_then_to_the_tie_order():
    # 2 each, 12 wanted, 3 allowed: half a node each.
    count = np.array([1.9, 2.1, 2.0, 2.0, 2.2, 1.8])
    tie_order = np.array([5, 4, 3, 2, 1, 0])
    given = allot(count, rounding="round", max_generated=10, cap=0.5, tie_order=tie_order)
    assert given.tolist() == [0, 1, 0, 1, 1, 0]


@given(st.permutations(range(12)), st.sampled_from([0.2, 0.5, 0.9]))
def test_numbers_do_not_depend_on_the_order_of_the_subjects(order, cap):
    order = np.array(order)
    count, tie_order = np.linspace(0.6, 2.4, 12), np.arange(12)
    options = {"rounding": "round", "max_generated": 10, "cap": cap}
    plain = allot(count, **options, tie_order=tie_order)
    assert allot(count[order], **options, tie_order=tie_order).tolist() == plain[order].tolist()


def test_scaling_follows_the_limit_of_each_subject():
    # 100 counts as 4: shares of 3 are 4 * 3/6 = 2, 0.5 and 0.5.
    assert given_to(100, 1, 1, max_generated=4, cap=1.0) == [2, 1, 0]


def test_the_limit_equals_the_decimal_of_the_config():
    # 0.29 * 100 is 28.999999999999996 in binary.
    assert sum(given_to(*[5.0] * 100, cap=0.29)) == 29


def test_the_paper_turns_200_subjects_into_300_nodes():
    count = np.linspace(0, 10, 200)
    assert allot(count, rounding="round", max_generated=10, cap=0.5, tie_order=np.arange(len(count))).sum() == 100


def test_a_cap_of_zero_gives_nothing():
    assert given_to(5, 5, cap=0.0) == [0, 0]


def test_no_subjects_give_no_numbers():
    assert given_to(cap=0.5) == []


@given(count=counts, rounding=roundings, max_generated=st.integers(1, 12), cap=st.none() | st.floats(0, 3))
def test_the_cap_is_reached_but_never_exceeded(count, rounding, max_generated, cap):
    free = allot(count, rounding=rounding, max_generated=max_generated, cap=None, tie_order=np.arange(len(count)))
    number = allot(count, rounding=rounding, max_generated=max_generated, cap=cap, tie_order=np.arange(len(count)))
    assert number.dtype == np.int64
    assert (number >= 0).all()
    assert (number <= free).all()
    limit = math.inf if cap is None else math.floor(round(cap * len(count), 9))
    assert number.sum() == min(free.sum(), limit)


@given(count=counts, rounding=roundings, cap=st.floats(0, 3))
def test_every_share_is_off_by_less_than_one(count, rounding, cap):
    free = allot(count, rounding=rounding, max_generated=10, cap=None, tie_order=np.arange(len(count)))
    number = allot(count, rounding=rounding, max_generated=10, cap=cap, tie_order=np.arange(len(count)))
    factor = number.sum() / max(free.sum(), 1)
    assert (np.abs(number - factor * free) < 1).all()


@given(count=counts, cap=st.floats(0, 3))
def test_a_larger_prediction_never_gets_fewer_nodes(count, cap):
    number = allot(count, rounding="round", max_generated=10, cap=cap, tie_order=np.arange(len(count)))
    order = np.lexsort((np.arange(len(count)), -count, -np.clip(np.rint(count), 0, 10)))
    assert (np.diff(number[order]) <= 0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_counts_that_are_not_finite_are_refused(value):
    with pytest.raises(ValueError, match="not finite"):
        given_to(1.0, value)
