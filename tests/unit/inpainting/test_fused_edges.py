"""Edges of generated nodes by the population graph's rule."""

import numpy as np

from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.settings import FusingSettings
from support.samples.fake_generator import NO_CAP, FakeGenerator, dense, inputs_of, line


def test_a_generated_node_on_a_line():
    # Distances 1, 3, 7, 2, 6, 4 have the mean 23/6. The node at 2 lies 1 from its parent at 1 and 1 from the one at 3.
    inputs, generator = line(0, 1, 3, 7, number=[0, 1, 0, 0], features=[2])
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    sigma = 23 / 6
    near = np.exp(-1 / (2 * sigma**2))
    adjacency = dense(fused, 5)
    np.testing.assert_allclose(adjacency[4], [0, near, near, 0, 1], rtol=1e-6)
    np.testing.assert_array_equal(adjacency[:, 4], adjacency[4])
    assert fused.parent.tolist() == [1]
    assert fused.institution.tolist() == [0]
    assert fused.features.tolist() == [[2]]


def test_the_parent_is_kept_beyond_the_k_nearest_with_its_own_weight():
    # At 6 the nearest is the one at 7 (k = 1); the parent at 0 is 6 away.
    inputs, generator = line(0, 1, 3, 7, number=[1, 0, 0, 0], features=[6], k=1)
    row = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 5)[4]
    sigma = 23 / 6
    np.testing.assert_allclose(row, [np.exp(-36 / (2 * sigma**2)), 0, 0, np.exp(-1 / (2 * sigma**2)), 1], rtol=1e-6)


def test_a_parent_without_similarity_gets_the_smallest_weight_of_the_row():
    # The node is predicted to be of sex 1, as are the subjects at 3 and 7; its parent at 0 is of sex 0.
    inputs, generator = line(0, 1, 3, 7, number=[1, 0, 0, 0], features=[2], sex=[0, 0, 1, 1], new_sex=[1])
    row = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 5)[4]
    sigma = 23 / 6
    near, far = np.exp(-1 / (2 * sigma**2)), np.exp(-25 / (2 * sigma**2))
    np.testing.assert_allclose(row, [far, 0, near, far, 1], rtol=1e-6)


def test_equally_near_subjects_are_kept_in_order_of_id():
    # The node at 3 lies 1 from those at 2 and 4; with k = 1 the first is kept, beside its parent at 0.
    inputs, generator = line(2, 4, 0, number=[0, 0, 1], features=[3], k=1)
    row = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 4)[3]
    assert (row > 0).tolist() == [True, False, True, True]


def test_a_node_without_similar_subjects_gets_the_smallest_weight_among_subjects():
    inputs, generator = line(0, 1, 3, number=[0, 1, 0], features=[2], new_sex=[-1])
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert dense(fuse(inputs, generator, NO_CAP, max_generated=10), 4)[3].tolist() == [0, weakest, 0, 1]


def test_a_node_with_underflowing_similarities_gets_the_smallest_weight_among_subjects():
    # Sigma is 2; at 32 even the nearest, 29 away, has exp(-29^2 / 8) = 2e-46, less than single precision can hold.
    inputs, generator = line(0, 1, 3, number=[0, 1, 0], features=[32])
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert dense(fused, 4)[3].tolist() == [0, weakest, 0, 1]
    assert (fused.weight > 0).all()


def test_generated_nodes_are_not_joined_to_each_other():
    # Both nodes are of sex 1, nobody else is: each keeps its parent alone.
    inputs, generator = line(0, 1, 3, 7, number=[1, 0, 0, 1], features=[2, 3], new_sex=[1, 1])
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 6)
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert adjacency[4].tolist() == [weakest, 0, 0, 0, 1, 0]
    assert adjacency[5].tolist() == [0, 0, 0, weakest, 0, 1]


def test_close_generated_nodes_keep_k_subjects_each():
    inputs, generator = line(0, 2, 5, number=[2, 0, 0], features=[2, 2], k=2)
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 5)
    assert ((adjacency[3:, :3] > 0).sum(axis=1) >= 2).all() and not adjacency[3, 4] and not adjacency[4, 3]


def test_a_generated_node_has_its_parents_site():
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], site=[0, 1, 1], phenotypes=("site",))
    row = dense(fuse(inputs, FakeGenerator([0, 1, 0], np.array([[0.0]])), NO_CAP, max_generated=10), 4)[3]
    assert (row > 0).tolist() == [False, True, True, True]


def test_predicted_age_weighs_edges_as_a_subjects_age_does():
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], age=[10, 12, 15], phenotypes=("age",))
    generator = FakeGenerator([1, 0, 0], np.array([[0.0]]), age=[13.5])
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    # 12 and 15 lie within two years of 13.5; the parent's 10 does not.
    weights = dense(fused, 4)[3]
    sigma = 2.0
    one, three = np.exp(-1 / (2 * sigma**2)), np.exp(-9 / (2 * sigma**2))
    np.testing.assert_allclose(weights, [three, one, three, 1], rtol=1e-6)
    assert fused.age.tolist() == [13.5]


def test_under_local_scope_each_institution_has_its_own_embedding():
    # Institution 0 varies in column 0 alone, so only there may its generated node differ; institution 1 in column 1.
    features = [[0, 0], [1, 0], [3, 0], [0, 0], [0, 10], [0, 30]]
    inputs = inputs_of(features, [0, 0, 0, 1, 1, 1], phenotypes=())
    generator = FakeGenerator([1, 0, 0, 1, 0, 0], np.array([[0.0, 99.0], [99.0, 0.0]]))
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 8)
    # In both the node lies on its parent, at distance 1 (10) of the next; the mean distances are 2 and 20.
    np.testing.assert_allclose(adjacency[6], [1, np.exp(-1 / 8), 0, 0, 0, 0, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(adjacency[7], [0, 0, 0, 1, np.exp(-1 / 8), 0, 0, 1], rtol=1e-6)


def test_under_a_cut_global_graph_sigma_is_over_all_subjects():
    # Positions 0, 1, 3, 7 have the mean distance 23/6; institution 0 alone (0 and 3) has 3.
    inputs = inputs_of([[0], [1], [3], [7]], [0, 1, 0, 1], phenotypes=(), scope="global_cut")
    row = dense(fuse(inputs, FakeGenerator([0, 0, 1, 0], np.array([[1.0]])), NO_CAP, max_generated=10), 5)[4]
    sigma = 23 / 6
    # Subjects 0 and 2 are each other's only neighbours inside: a new node has one, its parent.
    np.testing.assert_allclose(row, [0, 0, np.exp(-4 / (2 * sigma**2)), 0, 1], rtol=1e-6)


def test_binary_edges_join_a_node_to_its_parent_only():
    inputs, generator = line(0, 1, 3, 7, number=[0, 2, 0, 0], features=[2, 2.5], self_weight=0.5)
    adjacency = dense(fuse(inputs, generator, FusingSettings(cap=None, edges="binary"), max_generated=10), 6)
    assert adjacency[4].tolist() == [0, 1, 0, 0, 0.5, 0]
    assert adjacency[5].tolist() == [0, 1, 0, 0, 0, 0.5]
    assert adjacency[:, 4:].T.tolist() == adjacency[4:].tolist()


def test_no_self_loops_where_the_graph_has_none():
    inputs, generator = line(0, 1, 3, number=[1, 1, 1], features=[0, 1, 2], self_weight=0.0)
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    assert len(fused.parent) == 3
    assert not (fused.row == fused.column).any()
