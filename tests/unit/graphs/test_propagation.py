"""D^-1/2 A D^-1/2 equals numbers by hand and PyG's gcn_norm."""

import numpy as np
import pytest

from brainfed.graphs.propagation import block_edges, dense_block, edges_by_block, normalised_adjacency

# Node 0 and 1 joined by weight 3, all with self-loops of 1: row sums 4, 4, 1.
ROW, COLUMN = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 2])
WEIGHT = np.array([1, 3, 3, 1, 1], dtype=np.float32)


def test_propagation_equals_numbers_by_hand():
    row, column, value = normalised_adjacency(ROW, COLUMN, WEIGHT, 3)
    np.testing.assert_array_equal(row, ROW)
    np.testing.assert_array_equal(column, COLUMN)
    np.testing.assert_allclose(value, [1 / 4, 3 / 4, 3 / 4, 1 / 4, 1])


def test_incoming_edges_of_a_test_subject_do_not_change_training_rows():
    # Node 2 is a test subject: it receives from node 0 with weight 3, so its row sums to 4; node 0's stays 4.
    row, column = np.append(ROW, 2), np.append(COLUMN, 0)
    _, _, value = normalised_adjacency(row, column, np.append(WEIGHT, np.float32(3)), 3)
    np.testing.assert_allclose(value[:4], [1 / 4, 3 / 4, 3 / 4, 1 / 4])
    assert value[4] == pytest.approx(1 / 4)
    assert value[5] == pytest.approx(3 / np.sqrt(4 * 4))


def test_a_node_with_an_empty_row_receives_and_sends_nothing():
    _, _, value = normalised_adjacency(np.array([0, 0]), np.array([0, 1]), np.array([1.0, 1.0]), 2)
    np.testing.assert_allclose(value, [1 / 2, 0])


def test_propagation_equals_the_norm_of_pyg():
    torch = pytest.importorskip("torch")
    gcn_norm = pytest.importorskip("torch_geometric.nn.conv.gcn_conv").gcn_norm
    rng = np.random.default_rng(0)
    upper = np.triu((rng.random((20, 20)) < 0.2) * rng.random((20, 20)), 1)
    adjacency = upper + upper.T + np.eye(20)
    adjacency[15:, :15] += (rng.random((5, 15)) < 0.3) * 0.7
    row, column = np.nonzero(adjacency)
    _, _, value = normalised_adjacency(row, column, adjacency[row, column], 20)
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
