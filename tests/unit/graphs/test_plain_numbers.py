"""Homophily, similarity and propagation equal numbers by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from brainfed.graphs import (
    Graph,
    Nodes,
    PopulationGraph,
    dense_block,
    edges_by_block,
    homophily,
    mean_pairwise_distance,
    normalised_adjacency,
    similarity,
)
from brainfed.graphs import _embedding as embedding
from brainfed.graphs._embedding import fit_projection
from brainfed.graphs._neighbours import imaging_similarity, largest_in_rows, phenotype_similarity
from brainfed.graphs._population import random_pair
from brainfed.graphs._propagation import block_edges
from reference.population_graph import best_partners, mean_distance


def graph(edges, n):
    """Undirected graph with self-loops from (i, j, weight)."""
    both = [*edges, *[(j, i, w) for i, j, w in edges], *[(i, i, 1.0) for i in range(n)]]
    row, column, weight = zip(*both, strict=True)
    embedding = np.zeros((n, 1), np.float32)
    return PopulationGraph(np.array(row), np.array(column), np.array(weight, np.float32), embedding, (1.0,))


PATH = graph([(0, 1, 2.0), (1, 2, 1.0), (2, 3, 1.0)], 4)


def test_a_path_by_hand():
    found = homophily(PATH, np.array([1, 1, 0, 0]))
    assert found.unweighted == pytest.approx(2 / 3)
    assert found.weighted == pytest.approx(3 / 4)
    assert found.chance == pytest.approx(1 / 3)  # of the 6 pairs, {0, 1} and {2, 3} agree
    assert found.edges == 6


def test_edges_of_unlabelled_nodes_do_not_count():
    found = homophily(PATH, np.array([1, 1, 0, -1]))
    assert found.unweighted == pytest.approx(1 / 2)
    assert found.weighted == pytest.approx(2 / 3)
    assert found.chance == pytest.approx(1 / 3)
    assert found.edges == 4


def test_chance_inside_institutions_is_averaged_over_edges():
    # Institution 0: labels 1 1 0 (chance 1/3) with 2 undirected edges; institution 1: labels 0 0 (chance 1), 1 edge.
    two = graph([(0, 1, 1.0), (1, 2, 1.0), (3, 4, 1.0)], 5)
    label, institution = np.array([1, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 1])
    assert homophily(two, label, institution).chance == pytest.approx((2 * (1 / 3) + 1 * 1) / 3)
    assert homophily(two, label).chance == pytest.approx(4 / 10)


def test_homophily_without_labelled_edges_is_nan():
    alone = homophily(graph([], 3), np.array([0, 1, 0]))
    assert np.isnan([alone.unweighted, alone.weighted, alone.chance]).all()
    assert alone.edges == 0


def test_homophily_agrees_with_pyg():
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric.utils").homophily
    rng = np.random.default_rng(0)
    edges = [(i, j, 1.0) for i in range(25) for j in range(i) if rng.random() < 0.2]
    label = rng.integers(0, 2, 25)
    expected = pyg(torch.tensor([(i, j) for i, j, _ in edges]).T, torch.from_numpy(label), method="edge")
    assert homophily(graph(edges, 25), label).unweighted == pytest.approx(expected)


def test_random_edges_are_at_chance():
    rng = np.random.default_rng(1)
    label = (rng.random(400) < 0.3).astype(np.int64)
    edges = [(int(i), int(j), 1.0) for i, j in rng.integers(0, 400, (20000, 2)) if i != j]
    found = homophily(graph(edges, 400), label)
    assert found.unweighted == pytest.approx(found.chance, abs=0.02)


@pytest.mark.parametrize(
    ("label", "expected"), [([0, 0, 1], 1 / 3), ([1, 1], 1.0), ([0, 1], 0.0), ([0, 0, 1, 1], 1 / 3)]
)
def test_the_probability_of_a_random_pair_equals_counts_by_hand(label, expected):
    assert random_pair(np.array(label)) == pytest.approx(expected)


def test_a_random_pair_needs_two_labelled_nodes():
    assert np.isnan(random_pair(np.array([1, -1])))


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


def test_duplicates_add_no_direction():
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


# Node 0 and 1 joined by weight 3, all with self-loops of 1: row sums 4, 4, 1.
ROW, COLUMN = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 2])

WEIGHT = np.array([1, 3, 3, 1, 1], dtype=np.float32)


def test_propagation_equals_numbers_by_hand():
    row, column, value = normalised_adjacency(Graph(ROW, COLUMN, WEIGHT, 3))
    np.testing.assert_array_equal(row, ROW)
    np.testing.assert_array_equal(column, COLUMN)
    np.testing.assert_allclose(value, [1 / 4, 3 / 4, 3 / 4, 1 / 4, 1])


def test_incoming_edges_of_a_test_subject_do_not_change_training_rows():
    # Node 2 is a test subject: it receives from node 0 with weight 3, so its row sums to 4; node 0's stays 4.
    row, column = np.append(ROW, 2), np.append(COLUMN, 0)
    _, _, value = normalised_adjacency(Graph(row, column, np.append(WEIGHT, np.float32(3)), 3))
    np.testing.assert_allclose(value[:4], [1 / 4, 3 / 4, 3 / 4, 1 / 4])
    assert value[4] == pytest.approx(1 / 4)
    assert value[5] == pytest.approx(3 / np.sqrt(4 * 4))


def test_a_node_with_an_empty_row_receives_and_sends_nothing():
    _, _, value = normalised_adjacency(Graph(np.array([0, 0]), np.array([0, 1]), np.array([1.0, 1.0]), 2))
    np.testing.assert_allclose(value, [1 / 2, 0])


def test_propagation_equals_the_norm_of_pyg():
    torch = pytest.importorskip("torch")
    gcn_norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv").gcn_norm
    rng = np.random.default_rng(0)
    upper = np.triu((rng.random((20, 20)) < 0.2) * rng.random((20, 20)), 1)
    adjacency = upper + upper.T + np.eye(20)
    adjacency[15:, :15] += (rng.random((5, 15)) < 0.3) * 0.7
    row, column = np.nonzero(adjacency)
    _, _, value = normalised_adjacency(Graph(row, column, adjacency[row, column], 20))
    # PyG's edges point from source to target: the receiver, our row, is second.
    edges = torch.from_numpy(np.stack([column, row]))
    _, expected = gcn_norm(edges, torch.from_numpy(adjacency[row, column]), 20, add_self_loops=False)
    np.testing.assert_allclose(value, expected.numpy(), rtol=1e-12)


def test_the_dense_block_of_members_has_no_edges_to_others():
    value = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(dense_block(ROW, COLUMN, value, np.array([1, 2]), 3), [[4, 0], [0, 5]])
    np.testing.assert_array_equal(dense_block(ROW, COLUMN, value, np.array([1, 0]), 3), [[4, 3], [2, 1]])


def test_edges_of_all_groups_at_once_are_those_of_each():
    random = np.random.default_rng(4)
    row, column = random.integers(0, 40, (2, 300))
    value = random.random(300)
    order = random.permutation(40)
    groups = [np.sort(part) for part in (order[:12], order[12:13], order[13:13], order[13:35])]
    found = edges_by_block(row, column, value, groups, 40)
    for members, edges in zip(groups, found, strict=True):
        for one, other in zip(edges, block_edges(row, column, value, members, 40), strict=True):
            np.testing.assert_array_equal(one, other)
