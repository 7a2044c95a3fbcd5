"""Imaging and phenotype similarity equal values by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from brainfed.graphs.neighbours.search import largest_in_rows
from brainfed.graphs.neighbours.similarity import (
    Nodes,
    imaging_similarity,
    mean_pairwise_distance,
    phenotype_similarity,
    similarity,
)
from brainfed.graphs.population import embedding
from brainfed.graphs.population.embedding import fit_projection
from reference.population_graph import best_partners, mean_distance

# A 3-4-5 triangle: distances 3, 4 and 5.
TRIANGLE = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])


def test_sigma_is_the_mean_pairwise_distance():
    assert mean_pairwise_distance(TRIANGLE) == pytest.approx(4.0)


@given(n=st.integers(0, 30), entries=st.integers(1, 100))
@hypothesis_settings(max_examples=30, deadline=None)
def test_sigma_does_not_depend_on_the_block(n, entries):
    embedding = np.random.default_rng(n).normal(size=(n, 3))
    assert mean_pairwise_distance(embedding, entries) == pytest.approx(mean_distance(embedding), rel=1e-12)


def test_imaging_similarity_by_hand():
    # exp(-9 / 32) for the pair at distance 3, with sigma = 4.
    found = imaging_similarity(TRIANGLE, TRIANGLE, sigma=4.0)
    assert found[0, 1] == pytest.approx(0.7548396, abs=1e-6)
    assert found[0, 2] == pytest.approx(np.exp(-0.5))
    assert found[1, 2] == pytest.approx(np.exp(-25 / 32))
    np.testing.assert_array_equal(np.diag(found), 1.0)
    np.testing.assert_array_equal(found, found.T)


def test_with_sigma_zero_only_equal_subjects_are_similar():
    np.testing.assert_array_equal(imaging_similarity(TRIANGLE, TRIANGLE, sigma=0.0), np.eye(3))


def test_phenotype_similarity_counts_agreements_of_known_values():
    nodes = Nodes(
        np.zeros((4, 1)),
        {"sex": np.array([0, 0, 1, -1]), "age": np.array([10.0, 12.0, 12.5, np.nan]), "site": np.array([0, 1, 1, -1])},
    )
    expected = [
        [3, 2, 0, 0],  # 0 and 1: sex, and ages 2 years apart; 0 and 2: 2.5 years apart
        [2, 3, 2, 0],  # 1 and 2: age and site
        [0, 2, 3, 0],
        [0, 0, 0, 0],
    ]
    np.testing.assert_array_equal(phenotype_similarity(nodes, nodes, age_gap=2.0), expected)


def test_without_phenotypes_similarity_is_that_of_imaging():
    nodes = Nodes(TRIANGLE, {})
    np.testing.assert_array_equal(similarity(nodes, nodes, 4.0, 2.0), imaging_similarity(TRIANGLE, TRIANGLE, 4.0))


def test_similarity_is_the_product_of_imaging_and_phenotypes():
    nodes = Nodes(TRIANGLE, {"sex": np.array([1, 1, 0]), "age": np.array([20.0, 21.0, 20.0])})
    found = similarity(nodes, nodes, 4.0, 2.0)
    assert found[0, 1] == pytest.approx(2 * np.exp(-9 / 32))
    assert found[0, 2] == pytest.approx(np.exp(-0.5))


@given(
    weights=st.lists(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=6, max_size=6), min_size=1, max_size=4),
    k=st.integers(1, 8),
)
@hypothesis_settings(max_examples=100, deadline=None)
def test_the_k_largest_positive_weights_are_kept_with_ties_by_lower_column(weights, k):
    kept = largest_in_rows(np.array(weights), k)
    for row, mask in zip(weights, kept, strict=True):
        assert np.flatnonzero(mask).tolist() == sorted(best_partners(dict(enumerate(row)), k))


def test_a_projection_to_all_components_keeps_distances():
    features = np.random.default_rng(0).normal(size=(6, 40))
    projected = fit_projection(features, 50)(features)
    assert projected.shape == (6, 5)
    np.testing.assert_allclose(cdist(projected, projected), cdist(features, features), atol=1e-12)
    np.testing.assert_allclose(projected.mean(axis=0), 0, atol=1e-12)


def test_projection_finds_the_direction_of_largest_variance():
    # Points on the line through (1, 1) / sqrt(2), at -2, 0 and 2.
    points = np.array([[-2.0], [0.0], [2.0]]) * np.array([[1.0, 1.0]]) / np.sqrt(2)
    projected = fit_projection(points + 5, 1)(points + 5)
    np.testing.assert_allclose(np.abs(projected[:, 0]), [2, 0, 2], atol=1e-12)


@pytest.mark.parametrize("subjects", [0, 1, 5])
def test_equal_subjects_have_no_component(subjects):
    assert fit_projection(np.full((subjects, 3), 0.1), 50)(np.ones((4, 3))).shape == (4, 0)


def test_twins_add_no_direction():
    features = np.random.default_rng(3).normal(size=(4, 30))
    assert len(fit_projection(features[[0, 1, 2, 3, 3, 0]], 50).components) == 3


@pytest.mark.parametrize("shape", [(20, 60), (60, 20), (20, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_exact_projection_equals_that_of_scikit_learn(shape, dtype):
    features = np.random.default_rng(4).normal(size=shape).astype(dtype) + 3
    expected = PCA(7, svd_solver="full").fit(features.astype(np.float64))
    found = fit_projection(features, 7)
    np.testing.assert_allclose(found.components, expected.components_, atol=1e-9)
    np.testing.assert_allclose(found(features), expected.transform(features.astype(np.float64)), atol=1e-9)


def test_the_randomised_projection_is_reproducible_and_close_to_the_exact_one(monkeypatch):
    rng = np.random.default_rng(1)
    strengths = np.array([100.0, 50.0, 25.0])
    features = rng.normal(size=(300, 3)) * strengths @ rng.normal(size=(3, 200)) + rng.normal(size=(300, 200))
    exact = fit_projection(features, 3)
    monkeypatch.setattr(embedding, "EXACT_RANK", 100)
    first = fit_projection(features, 3)
    assert (first.components != exact.components).any()
    np.testing.assert_array_equal(first.components, fit_projection(features, 3).components)
    np.testing.assert_allclose(np.abs(first.components @ exact.components.T), np.eye(3), atol=1e-4)
