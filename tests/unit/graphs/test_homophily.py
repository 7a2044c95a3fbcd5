"""Homophily of small graphs equals counts by hand."""

import numpy as np
import pytest

from brainfed.graphs.population.build import PopulationGraph
from brainfed.graphs.population.homophily import homophily, random_pair


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
