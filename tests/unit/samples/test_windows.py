"""Windows of region series: by definition, covering, uniform, keyed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainfed.runtime import Streams
from brainfed.samples import test_offsets as offsets_in_test
from brainfed.samples import training_offset, window, wrapped
from reference import series as plain


def series(timepoints, regions=3):
    return np.arange(timepoints * regions, dtype=np.float32).reshape(timepoints, regions)


def test_a_window_is_a_view_and_a_short_series_is_wrapped():
    held = series(10)
    cut = window(held, 4, 6)
    np.testing.assert_array_equal(cut, held[6:])
    assert np.shares_memory(cut, held)
    np.testing.assert_array_equal(window(held[:3], 7, 0), held[[0, 1, 2, 0, 1, 2, 0]])


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_a_window_is_its_definition(timepoints, length, data):
    held = series(timepoints)
    offset = data.draw(st.integers(0, max(timepoints - length, 0)))
    np.testing.assert_array_equal(window(held, length, offset), plain.window(held, length, offset))


@pytest.mark.parametrize("offset", [-1, 7])
def test_a_window_outside_of_the_series_is_none(offset):
    with pytest.raises(ValueError, match=f"from 0 to 6, found {offset}"):
        window(series(10), 4, offset)
    with pytest.raises(ValueError, match="from 0 to 0"):
        window(series(3), 4, 1)
    with pytest.raises(ValueError, match="one or more, found 10 and 0"):
        window(series(10), 0, 0)


@pytest.mark.parametrize(
    ("timepoints", "expected"),
    [(78, (0,)), (128, (0,)), (129, (0, 1)), (256, (0, 128)), (257, (0, 64, 129)), (300, (0, 86, 172))],
)
def test_windows_of_a_test_by_hand(timepoints, expected):
    assert offsets_in_test(timepoints, 128) == expected


@given(st.integers(1, 300), st.integers(1, 60))
def test_windows_of_a_test_cover_the_series_with_as_few_as_can(timepoints, length):
    offsets = offsets_in_test(timepoints, length)
    seen = {moment for offset in offsets for moment in range(offset, offset + length)}
    assert set(range(timepoints)) <= seen
    assert len(offsets) == -(-timepoints // length)
    assert offsets[0] == 0 and offsets[-1] == max(timepoints - length, 0)
    steps = np.diff(offsets)
    assert len(steps) == 0 or steps.max() - steps.min() <= 1


def test_offsets_of_training_are_uniform_and_reach_both_ends():
    drawn = [training_offset(Streams(1), 13, 4, "s01", number) for number in range(4000)]
    counts = np.bincount(drawn, minlength=10)
    assert len(counts) == 10
    expected = len(drawn) / 10
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # chi-squared with 9 degrees of freedom, p = .001


def test_an_offset_is_keyed_by_its_repeat_and_parts_alone():
    first = [training_offset(Streams(1), 500, 128, "s01", step) for step in range(20)]
    assert first == [training_offset(Streams(1), 500, 128, "s01", step) for step in range(20)]
    assert first != [training_offset(Streams(1), 500, 128, "s02", step) for step in range(20)]
    assert first != [training_offset(Streams(1, 1), 500, 128, "s01", step) for step in range(20)]


def test_a_series_that_is_no_longer_than_the_window_has_one_offset():
    for timepoints in (2, 127, 128):
        assert {training_offset(Streams(1), timepoints, 128, step) for step in range(20)} == {0}


def test_wrapped_subjects_are_those_shorter_than_the_window():
    assert wrapped(np.array([127, 128, 78, 300, 2]), 128) == 3
    assert wrapped(np.array([128]), 128) == 0
