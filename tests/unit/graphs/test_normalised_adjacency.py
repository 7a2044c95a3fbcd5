"""The spatial graph of one subject: by hand, by its definition, and what holds for every series."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from brainfed.graphs.connectome.normalised import normalised_adjacency
from reference import series as plain


def test_two_equal_regions_one_opposite_and_one_silent():
    signal = np.array([1, 2, 3, 5], dtype=np.float32)
    series = np.stack([signal, 3 * signal, -signal, np.full(4, 0.1, dtype=np.float32)], axis=1)
    expected = [[0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    found = normalised_adjacency(series)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("timepoints", "regions"), [(2, 3), (40, 1), (30, 12), (8, 20)])
def test_it_is_its_definition(timepoints, regions):
    drawn = np.random.default_rng(regions).standard_normal((timepoints, regions)).astype(np.float32)
    drawn[:, regions // 2] = 0
    np.testing.assert_allclose(normalised_adjacency(drawn), plain.normalised_adjacency(drawn), atol=1e-6)


@given(arrays(np.float32, st.tuples(st.integers(2, 12), st.integers(1, 6)), elements=st.floats(-5, 5, width=16)))
def test_every_series_has_a_symmetric_graph_with_eigenvalues_between_minus_1_and_1(series):
    found = normalised_adjacency(series)
    assert np.isfinite(found).all() and (found >= 0).all() and (np.diag(found) > 0).all()
    np.testing.assert_allclose(found, found.T, atol=1e-6)
    assert np.abs(np.linalg.eigvalsh(found.astype(np.float64))).max() <= 1 + 1e-5


def test_offset_and_scale_of_a_region_change_nothing():
    drawn = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    scaled = drawn * np.array([1, 2, 4, 8, 16, 32], dtype=np.float32) + np.float32(3)
    np.testing.assert_allclose(normalised_adjacency(scaled), normalised_adjacency(drawn), atol=1e-5)
