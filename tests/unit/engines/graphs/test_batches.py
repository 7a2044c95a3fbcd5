"""Batches of graphs and their dropout."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brainfed.engines.graphs import _batch as batch
from brainfed.engines.graphs._batch import Bags, Graphs, Wiring, distinct_bags, distinct_rows, in_order
from brainfed.engines.graphs._network import KeyedDropout
from brainfed.runtime import Streams
from brainfed.samples import GraphSamples
from reference.graph_cohorts import random_graphs
from reference.graph_federation import matrices

LIKE = torch.zeros(1, dtype=torch.float64)


def dense(graphs, numbers):
    """A + I of some graphs, receivers in rows."""
    return torch.block_diag(*(matrices(graphs, number)[1] + torch.eye(sizes(graphs)[number]) for number in numbers))


def sizes(graphs):
    return np.diff(graphs.node_start).tolist()


@given(st.integers(0, 100), st.lists(st.integers(0, 6), min_size=1, max_size=9))
def test_bags_are_dense_products_and_their_adjoints(seed, chosen):
    graphs = random_graphs(7, seed=seed, directed=True)
    expected = dense(graphs, chosen)
    rows = torch.randn(len(expected), 5, dtype=torch.float64)
    for wiring, matrix in ((Wiring.to_receivers(graphs), expected), (Wiring.to_senders(graphs), expected.T)):
        part, nodes = wiring.among(np.array(chosen))
        torch.testing.assert_close(Bags.of(part.index, part.start, LIKE.device).sums(rows), matrix @ rows)
        assert len(nodes) == len(expected)
        assert part.same(
            (Wiring.to_receivers if matrix is expected else Wiring.to_senders)(graphs.of(np.array(chosen)))
        )


def test_an_inverse_is_the_adjoint_of_reading_rows():
    place = np.array([2, 0, 2, 3, 0])
    read = torch.zeros(5, 4, dtype=torch.float64)
    read[torch.arange(5), torch.from_numpy(place)] = 1
    change = torch.randn(5, 3, dtype=torch.float64)
    torch.testing.assert_close(Bags.inverse(place, 4, LIKE.device).sums(change), read.T @ change)


def path(count, labels):
    """A path of nodes with one-hot labels."""
    forward = np.stack([np.arange(count - 1), np.arange(1, count)])
    source, target = np.concatenate([forward, forward[::-1]], axis=1)
    nodes = np.eye(2, dtype=np.float32)[labels]
    return GraphSamples(
        np.array([0, count]), nodes, np.array([0, len(source)]), source, target, np.ones(len(source), np.float32)
    )


def test_the_ends_of_a_path_are_alike_until_a_layer_sees_the_difference():
    # 0 - 0 - 0 - 0 - 0 - 1: the first layer sees two neighbours of label 0 at nodes 1, 2 and 3.
    graphs = path(6, [0, 0, 0, 0, 0, 1])
    wiring = Wiring.to_receivers(graphs)
    sums = np.array([[2, 0], [3, 0], [3, 0], [3, 0], [2, 1], [1, 1]])
    first, kind = distinct_rows(sums)
    assert (first.tolist(), kind.tolist()) == ([0, 1, 4, 5], [0, 1, 1, 1, 2, 3])
    members, start, kind = distinct_bags(wiring, kind)
    assert kind.tolist() == [0, 1, 2, 3, 4, 5]
    assert members[start[2] : start[3]].tolist() == [1, 1, 1]
    ring = path(6, [0] * 6)
    _, start, kind = distinct_bags(Wiring.to_receivers(ring), np.array([0, 1, 1, 1, 1, 0]))
    assert kind.tolist() == [0, 1, 2, 2, 1, 0]
    assert len(start) == 4


def test_kinds_stand_in_the_order_of_their_first_occurrence():
    row, read = in_order(np.array([7, 3, 7, 9, 3]))
    assert (row.tolist(), read.tolist()) == ([7, 3, 9], [0, 1, 0, 2, 1])


@pytest.mark.parametrize("one_hot", [True, False])
def test_the_first_convolution_reads_sums_of_features_and_degrees(one_hot):
    graphs = random_graphs(8, 2, one_hot=one_hot)
    chosen = np.array([1, 5, 6])
    (block,) = Graphs(graphs, LIKE).blocks(chosen)
    features = torch.cat([matrices(graphs, number)[0] for number in chosen])
    matrix = dense(graphs, chosen)
    expected = torch.cat([matrix @ features, matrix.sum(dim=1, keepdim=True)], dim=1)
    rows = block.table[block.row]
    assert (block.read is None) == (not one_hot)
    torch.testing.assert_close(rows if block.read is None else rows[block.read], expected)


def test_blocks_hold_all_graphs_of_a_step_in_their_order(monkeypatch):
    monkeypatch.setattr(batch, "NODES", 20)
    graphs = random_graphs(30, seed=2)
    chosen = np.arange(0, 30, 2)
    blocks = Graphs(graphs, LIKE).blocks(chosen)
    assert len(blocks) > 2
    found = np.concatenate([np.diff(block.members.start.numpy()) for block in blocks])
    assert found.tolist() == [sizes(graphs)[number] for number in chosen]
    assert max(len(block.graph) for block in blocks) < 20 + 12


def test_one_graph_larger_than_a_block_is_a_block(monkeypatch):
    monkeypatch.setattr(batch, "NODES", 2)
    blocks = Graphs(path(9, [0] * 9), LIKE).blocks(np.array([0]))
    assert [len(block.graph) for block in blocks] == [9]


@pytest.mark.parametrize("one_hot", [True, False])
def test_a_scored_graph_reads_its_own_nodes_and_neighbours(one_hot, monkeypatch):
    monkeypatch.setattr(batch, "NODES", 12)
    graphs, chosen = random_graphs(20, 2, one_hot=one_hot), np.array([3, 4, 9, 17, 18])
    blocks = Graphs(graphs, LIKE).scored(chosen, 3)
    assert len(blocks) > 1
    found = []
    for block in blocks:
        rows = block.table[block.row]
        for bags in block.layers:
            rows = bags.sums(rows)
        found.append(block.members.sums(rows))
    expected = []
    for number in chosen:
        features, matrix = matrices(graphs, number)
        matrix = matrix + torch.eye(len(matrix))
        constant = torch.ones(len(matrix), 1, dtype=features.dtype)
        expected.append((matrix @ matrix @ matrix @ torch.cat([features, constant], dim=1)).sum(dim=0))
    torch.testing.assert_close(torch.cat(found), torch.stack(expected).to(LIKE.dtype))


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
