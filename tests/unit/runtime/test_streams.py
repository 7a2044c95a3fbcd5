"""Random numbers: streams by their keys, and generators by their seeds."""

import numpy as np
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from brainfed.runtime import Streams, seeded

parts = st.lists(st.integers(0, 10_000), max_size=4).map(tuple)


def test_a_key_is_the_first_63_bits_of_a_sha256():
    # printf '[7, 2, "noise", 3, 1]' | sha256sum begins with f7d568413d362986; half of it, rounded down, is the key.
    assert Streams(7, 2).key("noise", 3, 1) == 0xF7D568413D362986 >> 1


def test_a_separator_in_a_name_makes_no_second_reading():
    assert Streams(0).key("noise", "a/b") != Streams(0).key("noise", "a", "b")
    assert Streams(0).key("noise", 1) != Streams(0).key("noise", "1")


def test_drawing_something_else_in_between_changes_nothing():
    streams = Streams(1)
    alone = streams.numpy("weights", 3).normal(size=8)
    streams.numpy("noise", 3).normal(size=5)
    np.testing.assert_array_equal(streams.numpy("weights", 3).normal(size=8), alone)


@given(st.integers(0, 2**31), st.integers(0, 100), parts, parts)
def test_other_parts_draw_other_numbers(seed, repeat, one, other):
    assume(one != other)
    streams = Streams(seed, repeat)
    assert streams.key("noise", *one) != streams.key("noise", *other)
    assert streams.key("noise", *one) != streams.key("weights", *one)


@given(st.integers(0, 2**31), st.integers(0, 100))
def test_seed_and_repeat_are_distinguished(seed, repeat):
    assert Streams(seed, repeat).key("split") != Streams(seed + 1, repeat).key("split")
    assert Streams(seed, repeat).key("split") != Streams(seed, repeat + 1).key("split")


@given(st.integers(-(2**31), 2**31), st.text(max_size=20))
def test_every_key_is_a_seed_that_torch_and_numpy_take(seed, purpose):
    assert 0 <= Streams(seed).key(purpose) < 2**63


def test_streams_of_two_institutions_are_uncorrelated():
    streams = Streams(0)
    draws = np.stack([streams.numpy("noise", institution).normal(size=20_000) for institution in range(4)])
    off_diagonal = np.corrcoef(draws)[np.triu_indices(4, 1)]
    assert np.abs(off_diagonal).max() < 5 / np.sqrt(20_000)


def test_a_secret_keys_what_protects_subjects_and_nothing_else():
    known, secret = Streams(1), Streams(1, secret="of a site")
    for purpose in ("weight-noise", "privacy-noise", "poisson"):
        assert secret.key(purpose, 3) != known.key(purpose, 3)
        assert secret.key(purpose, 3) != Streams(1, secret="of another").key(purpose, 3)
    for purpose in ("weights", "dropout", "fold"):
        assert secret.key(purpose, 3) == known.key(purpose, 3)


def test_torch_draws_as_after_its_own_seeding_and_goes_on_as_if_nothing_was():
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(7)
    after = torch.rand(5)
    torch.manual_seed(7)
    with seeded(3):
        drawn = torch.rand(5)
    assert drawn.equal(expected)
    assert torch.rand(5).equal(after)


def test_nothing_is_kept_for_gpus_that_no_one_uses():
    kept = len(torch.cuda._queued_calls)
    with seeded(3):
        torch.rand(5)
    assert len(torch.cuda._queued_calls) == kept
