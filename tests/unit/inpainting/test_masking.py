"""Masks hide leaves of a breadth-first tree: what stays visible stays connected (FedNI Sec. III-B.1)."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni._masking import draw_mask

SHAPES = {
    "path": nx.path_graph,
    "star": lambda m: nx.star_graph(m - 1),
    "clique": nx.complete_graph,
    "isolated": nx.empty_graph,
    "forest": lambda m: nx.disjoint_union_all([nx.path_graph(2), nx.star_graph(m - 3), nx.empty_graph(1)]),
    "sparse": lambda m: nx.gnp_random_graph(m, 1.5 / m, seed=m),
    "dense": lambda m: nx.gnp_random_graph(m, 0.2, seed=m),
}
graphs = st.builds(lambda shape, m: SHAPES[shape](m), st.sampled_from(sorted(SHAPES)), st.integers(3, 60))
seeds = st.integers(0, 10**6)


def matrix(graph):
    return csr_array(nx.to_numpy_array(graph))


def draw(graph, root=0, seed=0, **options):
    settings = InpaintingSettings(**options)
    return draw_mask(matrix(graph), root, np.random.default_rng(seed), settings)


def visible_part(graph, mask):
    return graph.subgraph(set(graph) - set(mask.hidden.tolist()))


def pairs(mask):
    return list(zip(mask.visible.tolist(), mask.target.tolist(), strict=True))


@given(graph=graphs, seed=seeds)
def test_the_visible_part_of_a_component_stays_connected(graph, seed):
    mask = draw(graph, root=seed % len(graph), seed=seed, hidden_least=0.0, hidden_most=1.0)
    left = visible_part(graph, mask)
    assert nx.number_connected_components(left) == nx.number_connected_components(graph)


@given(graph=graphs, seed=seeds)
def test_only_leaves_of_the_first_tree_are_hidden(graph, seed):
    root = seed % len(graph)
    mask = draw(graph, root=root, seed=seed, hidden_least=1.0, hidden_most=1.0)
    assert root not in mask.hidden
    assert not set(mask.parents.tolist()) & set(mask.hidden.tolist())
    assert all(graph.has_edge(*edge) for edge in zip(mask.parents.tolist(), mask.hidden.tolist(), strict=True))
    # A parent is one step nearer to the root; in other components the root is the mask's own secret.
    depth = nx.single_source_shortest_path_length(graph, root)
    for parent, node in zip(mask.parents.tolist(), mask.hidden.tolist(), strict=True):
        if node in depth:
            assert depth[node] == depth[parent] + 1


@given(graph=graphs, seed=seeds)
def test_ten_to_fifteen_percent_are_hidden_where_leaves_suffice(graph, seed):
    m, root = len(graph), seed % len(graph)
    every_leaf = draw(graph, root=root, seed=seed, hidden_least=1.0, hidden_most=1.0).hidden
    hidden = draw(graph, root=root, seed=seed).hidden
    most = math.floor(0.15 * m)
    assert min(math.ceil(0.10 * m), most, len(every_leaf)) <= len(hidden) <= most
    assert set(hidden.tolist()) <= set(every_leaf.tolist())
    assert (np.diff(hidden) > 0).all()


@given(graph=graphs, seed=seeds, masking=st.sampled_from(["bfs", "random"]))
def test_pairs_are_the_edges_between_visible_and_hidden_in_order(graph, seed, masking):
    mask = draw(graph, root=seed % len(graph), seed=seed, masking=masking, hidden_most=0.5)
    hidden = set(mask.hidden.tolist())
    expected = sorted((v, w) for v in graph if v not in hidden for w in graph[v] if w in hidden)
    assert pairs(mask) == expected


@given(graph=graphs, seed=seeds)
def test_parent_targets_are_the_tree_edges_of_the_same_mask(graph, seed):
    root = seed % len(graph)
    wide = draw(graph, root=root, seed=seed, hidden_most=0.5)
    narrow = draw(graph, root=root, seed=seed, hidden_most=0.5, targets="parent")
    np.testing.assert_array_equal(narrow.hidden, wide.hidden)
    np.testing.assert_array_equal(narrow.parents, wide.parents)
    assert pairs(narrow) == sorted(zip(wide.parents.tolist(), wide.hidden.tolist(), strict=True))


@given(graph=graphs, seed=seeds)
def test_random_masks_hide_as_many_as_trees_do(graph, seed):
    root = seed % len(graph)
    tree, random = (draw(graph, root=root, seed=seed, masking=masking) for masking in ("bfs", "random"))
    assert len(random.hidden) == len(tree.hidden)
    assert len(set(random.hidden.tolist())) == len(random.hidden)
    assert (random.parents == -1).all()
    assert len(random.parents) == len(random.hidden)


def test_random_masks_can_hide_every_node():
    star = nx.star_graph(19)
    hidden = [draw(star, seed=seed, masking="random").hidden.tolist() for seed in range(200)]
    assert {node for nodes in hidden for node in nodes} == set(range(20))


def test_all_leaves_of_a_depth_are_hidden_before_those_of_the_next():
    # Leaves 1, 2, 3 lie at depth 1 and leaves 5, 6, 7 at depth 2; node 4 joins those to the root 0.
    tree = nx.Graph([(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (4, 6), (4, 7)])
    seen = set()
    for seed in range(100):
        hidden = set(draw(tree, seed=seed, hidden_least=0.5, hidden_most=0.5).hidden.tolist())
        assert len(hidden) == 4
        assert {1, 2, 3} <= hidden or {5, 6, 7} <= hidden
        seen.add(frozenset(hidden))
    assert seen == {frozenset({1, 2, 3, w}) for w in (5, 6, 7)} | {frozenset({5, 6, 7, v}) for v in (1, 2, 3)}


def test_every_number_between_the_bounds_is_drawn():
    # 10 to 15 per cent of 40 nodes are 4, 5 or 6.
    numbers = [len(draw(nx.star_graph(39), seed=seed).hidden) for seed in range(300)]
    share = np.bincount(numbers, minlength=7)[4:] / 300
    assert set(numbers) == {4, 5, 6}
    np.testing.assert_allclose(share, 1 / 3, atol=0.1)


def test_bounds_equal_the_decimals_of_the_config():
    # 0.29 * 100 is 28.999999999999996 in binary.
    assert len(draw(nx.star_graph(99), hidden_least=0.29, hidden_most=0.29).hidden) == 29


def test_without_an_integer_between_the_bounds_the_upper_one_is_used():
    # 10 to 15 per cent of 18 nodes are 1.8 to 2.7: two. Of 15 nodes 1.5 to 2.25: two. Of 6 nodes 0.6 to 0.9: none.
    assert [len(draw(nx.star_graph(m - 1)).hidden) for m in (18, 15, 6)] == [2, 2, 0]


def test_a_path_has_two_leaves_to_hide_from_its_middle_and_one_from_its_end():
    path = nx.path_graph(40)
    middle = draw(path, root=7)
    assert middle.hidden.tolist() == [0, 39]
    assert middle.parents.tolist() == [1, 38]
    assert pairs(middle) == [(1, 0), (38, 39)]
    assert draw(path, root=0).hidden.tolist() == [39]


def test_all_nodes_of_a_clique_but_the_root_can_be_hidden():
    mask = draw(nx.complete_graph(5), root=3, hidden_least=1.0, hidden_most=1.0)
    assert mask.hidden.tolist() == [0, 1, 2, 4]
    assert mask.parents.tolist() == [3, 3, 3, 3]
    assert pairs(mask) == [(3, 0), (3, 1), (3, 2), (3, 4)]


def test_a_visible_node_misses_hidden_neighbours_that_are_not_its_children():
    # A triangle: the root's leaves 1 and 2 are joined; one of them is hidden, the other misses it as the root does.
    triangle = nx.complete_graph(3)
    mask = draw(triangle, root=0, hidden_least=0.4, hidden_most=0.4)
    (hidden,) = mask.hidden.tolist()
    assert pairs(mask) == [(0, hidden), (3 - hidden, hidden)]
    assert pairs(draw(triangle, root=0, hidden_least=0.4, hidden_most=0.4, targets="parent")) == [(0, hidden)]


def test_tiny_graphs_hide_nothing():
    for graph in (nx.empty_graph(1), nx.path_graph(2), nx.path_graph(3), nx.complete_graph(3)):
        for masking in ("bfs", "random"):
            mask = draw(graph, masking=masking)
            assert [len(mask.hidden), len(mask.parents), *pairs(mask)] == [0, 0]


def test_nodes_without_a_neighbour_are_never_hidden_by_a_tree():
    graph = nx.disjoint_union(nx.empty_graph(10), nx.path_graph(2))
    for root in (0, 10, 11):
        hidden = draw(graph, root=root, hidden_least=1.0, hidden_most=1.0).hidden.tolist()
        assert len(hidden) == 1
        assert set(hidden) <= {10, 11}


def test_roots_of_further_components_vary():
    graph = nx.disjoint_union(nx.path_graph(2), nx.path_graph(3))
    hidden = [tuple(draw(graph, seed=s, hidden_least=1.0, hidden_most=1.0).hidden.tolist()) for s in range(60)]
    assert set(hidden) == {(1, 4), (1, 2, 4), (1, 2)}


def test_self_loops_change_nothing():
    graph = SHAPES["sparse"](40)
    loops = nx.Graph(graph)
    loops.add_edges_from((node, node) for node in graph if graph.degree(node))
    for seed in range(20):
        plain, looped = draw(graph, root=5, seed=seed), draw(loops, root=5, seed=seed)
        np.testing.assert_array_equal(plain.hidden, looped.hidden)
        assert pairs(plain) == pairs(looped)


def test_one_stream_gives_one_mask_of_int64():
    graph = SHAPES["dense"](50)
    first, second, other = (draw(graph, root=4, seed=seed) for seed in (1, 1, 2))
    for name in ("hidden", "parents", "visible", "target"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
        assert getattr(first, name).dtype == np.int64
    assert first.hidden.tolist() != other.hidden.tolist()


def test_parents_as_targets_of_random_masks_are_refused():
    with pytest.raises(ValueError, match="nodes hidden at random have no parent"):
        InpaintingSettings(masking="random", targets="parent")
