"""Dropout from keyed streams."""

import numpy as np
import pytest

from brainfed.engines.graphs.dropout import KeyedDropout
from brainfed.runtime.streams import Streams

KEY, SHAPE = (1, 0, 2, 0, 0), (999, 64)


@pytest.mark.parametrize(("rate", "kept"), [(0.5, 1 / 2), (0.25, 3 / 4), (0.3, 45875 / 65536), (1e-7, 65535 / 65536)])
def test_the_expected_sum_is_that_without_dropout(rate, kept):
    dropout = KeyedDropout(rate, Streams(0))
    assert dropout.scale == pytest.approx(1 / kept, rel=1e-12)
    values = np.concatenate([np.asarray(each).ravel() for each in dropout.draws(KEY, [SHAPE] * 4)])
    found = (values > dropout.bound).mean()
    assert abs(found - kept) < 5 * (kept * (1 - kept) / values.size) ** 0.5 + 1e-9


@pytest.mark.parametrize("rate", [0.5, 0.3])
def test_the_share_of_possible_draws_is_exact(rate):
    dropout = KeyedDropout(rate, Streams(0))
    kind = np.asarray(dropout.draws(KEY, [(1, 1)])[0]).dtype
    every = np.arange(np.iinfo(kind).min, np.iinfo(kind).max + 1)
    assert (every > dropout.bound).mean() == pytest.approx(1 / dropout.scale, rel=1e-12)


def test_every_part_of_the_key_counts_and_nothing_else():
    dropout = KeyedDropout(0.5, Streams(0))
    first, second = dropout.draws(KEY, [SHAPE, SHAPE])
    assert dropout.draws(KEY, [SHAPE])[0].equal(first)
    assert not second.equal(first)
    for part in range(5):
        other = tuple(value + (place == part) for place, value in enumerate(KEY))
        assert not dropout.draws(other, [SHAPE])[0].equal(first)


def test_nothing_is_drawn_without_dropout():
    dropout = KeyedDropout(0.0, Streams(0))
    assert dropout.draws(KEY, [SHAPE]) == []
    assert dropout.scale == 1
