"""Generated nodes beside a graph: numbers, parents, edges, and what may stand in their place (FedNI Fig. 4)."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.configuration import load_plan
from brainfed.graphs import Edges, build_graph
from brainfed.inpainting import FusingSettings, Generated, crossings_of, fuse
from brainfed.inpainting._fusing import neighbours_of_a_node
from brainfed.runtime import UserError
from support.samples.fake_generator import NO_CAP, FakeGenerator, dense, inputs_of, line
from support.samples.inpainting_inputs import inpainting_inputs


def test_numbers_are_rounded_and_capped_and_nodes_drawn_once_in_order():
    # Institution 0 has four subjects and wants 2 + 1 + 0 + 0; institution 1 has two and wants 3 + 1, cut to 1 of 2.
    inputs = inputs_of(np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 1])
    generator = FakeGenerator([1.6, 0.7, 0.2, 0.0, 9.0, 1.0], np.zeros((9, 1)))
    fused = fuse(inputs, generator, FusingSettings(cap=0.8), max_generated=3)
    assert generator.requests == [[0, 0, 1, 4]]
    assert fused.parent.tolist() == [0, 0, 1, 4]
    assert fused.institution.tolist() == [0, 0, 0, 1]
    assert fused.count.tolist() == [1.6, 0.7, 0.2, 0.0, 9.0, 1.0]


def test_truncating_gives_fewer():
    inputs, generator = line(0, 1, 3, number=[1.9, 0.9, 0], features=[0])
    assert fuse(inputs, generator, FusingSettings(rounding="truncate"), max_generated=10).parent.tolist() == [0]


def test_an_institution_without_training_subjects_gets_no_nodes():
    features, institution = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    inputs = inputs_of(features, institution, fitted=np.arange(6) < 3)
    fused = fuse(inputs, FakeGenerator([1, 0, 0, 5, 5, 5], np.array([[1.0]])), NO_CAP, max_generated=10)
    assert fused.institution.tolist() == [0]


@pytest.mark.parametrize("what", ["count", "features"])
def test_the_error_of_a_diverged_generator_names_the_subject(what):
    inputs, generator = line(0, 1, 3, number=[0, 1, 1], features=[1, 2])
    if what == "count":
        generator.number[2] = np.nan
    else:
        generator.features[1] = np.inf
    with pytest.raises(UserError, match=r"sub-02.*diverged; lower `learning_rate`"):
        fuse(inputs, generator, NO_CAP, max_generated=10)


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


class Generator:
    """Predicts two neighbours for each subject and draws different nodes from a stream."""

    def __init__(self, inputs):
        self.inputs = inputs

    def counts(self):
        return np.where(self.inputs.fitted, 2.0, 0.0)

    def draw(self, parents):
        features = np.random.default_rng(0).uniform(-1, 1, (len(parents), 40)).astype(np.float32)
        return Generated(features, np.zeros(len(parents), np.int64), np.full(len(parents), 20.0))


@pytest.fixture(scope="module")
def cut_graph():
    inputs = inpainting_inputs(scope="global_cut", k=6)
    graph = build_graph(
        inputs.features, inputs.institution, site=inputs.site, sex=inputs.sex, age=inputs.age,
        settings=inputs.graph_settings, streams=inputs.streams,
    )  # fmt: skip
    return inputs, graph.cut


def fused(cut_graph, **settings):
    inputs, cut = cut_graph
    return fuse(inputs, Generator(inputs), FusingSettings(cap=None, **settings), None, cut)


def edges_of(graph, subjects):
    """(row, column, weight) of edges from generated nodes to subjects."""
    chosen = (graph.row >= subjects) & (graph.column < subjects)
    return graph.row[chosen] - subjects, graph.column[chosen], graph.weight[chosen]


def test_a_new_node_has_the_mean_degree_of_subjects_inside_the_institution(cut_graph):
    inputs, _ = cut_graph
    graph = fused(cut_graph)
    node, subject, _ = edges_of(graph, 60)
    for institution in range(3):
        members = inputs.members(institution)
        inside = np.isin(inputs.graph.row, members) & (inputs.graph.row != inputs.graph.column)
        degree = np.bincount(inputs.graph.row[inside], minlength=60)[members]
        mean = degree[degree > 0].mean()
        assert neighbours_of_a_node(inputs, institution, FusingSettings()) == round(mean)
        own = np.flatnonzero(graph.institution == institution)
        held = np.bincount(node, minlength=len(graph.parent))[own]
        assert set(held) == {round(mean)}
        assert np.isin(subject[np.isin(node, own)], members).all()
    for number, parent in enumerate(graph.parent):
        assert parent in subject[node == number]


def test_parent_and_binary_join_the_parent_alone(cut_graph):
    for edges in ("parent", "binary"):
        graph = fused(cut_graph, edges=edges)
        node, subject, weight = edges_of(graph, 60)
        np.testing.assert_array_equal(node, np.arange(len(graph.parent)))
        np.testing.assert_array_equal(subject, graph.parent)
        assert (weight == 1).all() == (edges == "binary")


def test_mean_nodes_have_the_institutions_mean_and_keep_edges_and_phenotypes(cut_graph):
    inputs, _ = cut_graph
    plain, graph = fused(cut_graph), fused(cut_graph, nodes="mean")
    for name in ("row", "column", "weight", "parent", "sex", "age"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(graph, name))
    for number, parent in enumerate(graph.parent):
        mean = inputs.features[inputs.institution == inputs.institution[parent]].mean(axis=0)
        np.testing.assert_allclose(graph.features[number], mean, rtol=1e-4, atol=1e-6)


def test_shuffled_features_keep_edges_and_stay_in_the_institution(cut_graph):
    plain, shuffled = fused(cut_graph), fused(cut_graph, nodes="shuffled")
    for name in ("row", "column", "weight", "parent"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(shuffled, name))
    assert (plain.features != shuffled.features).any(axis=1).mean() > 0.8
    for institution in range(3):
        own = plain.institution == institution
        held = [sorted(row.tobytes() for row in graph.features[own]) for graph in (plain, shuffled)]
        assert held[0] == held[1]


def test_true_nodes_are_missing_neighbours_of_their_parents_with_all_their_cut_edges(cut_graph):
    inputs, cut = cut_graph
    graph = fused(cut_graph, nodes="true")
    subject_of = {row.tobytes(): place for place, row in enumerate(inputs.features)}
    node, joined, weight = edges_of(graph, 60)
    assert 0 < len(graph.parent) <= 120
    seen = set()
    for number, parent in enumerate(graph.parent):
        subject = subject_of[graph.features[number].tobytes()]
        home = inputs.institution[parent]
        assert inputs.institution[subject] != home and (home, subject) not in seen
        seen.add((home, subject))
        taken = (cut.column == subject) & (inputs.institution[cut.row] == home)
        assert parent in cut.row[taken]
        assert sorted(joined[node == number]) == sorted(cut.row[taken])
        np.testing.assert_allclose(np.sort(weight[node == number]), np.sort(cut.weight[taken]), rtol=1e-6)


def test_only_the_oracle_is_in_the_ledger(cut_graph):
    inputs, _ = cut_graph
    rows = crossings_of(inputs, fused(cut_graph, nodes="true"), FusingSettings(nodes="true"))
    assert {row["name"] for row in rows} == {"features", "sex", "age"}
    assert all(str(row["axes"]).startswith("subjects") for row in rows)
    assert crossings_of(inputs, fused(cut_graph), FusingSettings()) == ()


def test_test_subjects_are_no_true_nodes(cut_graph):
    inputs, cut = cut_graph
    fitted = np.arange(60) % 4 != 0
    some = replace(inputs, fitted=fitted, part="fold-0")
    graph = fuse(some, Generator(some), FusingSettings(cap=None, nodes="true"), None, cut)
    held_back = {row.tobytes() for row in inputs.features[~fitted]}
    assert len(graph.parent) and not held_back & {row.tobytes() for row in graph.features}


def test_without_missing_neighbours_there_are_no_true_nodes(cut_graph):
    inputs, cut = cut_graph
    nothing = Edges(cut.row[:0], cut.column[:0], cut.weight[:0])
    assert len(fuse(inputs, Generator(inputs), FusingSettings(nodes="true"), None, nothing).parent) == 0


def test_true_nodes_need_a_cut():
    config = {
        "project": "study",
        "cohorts": {"ours": {"source": "simulate"}},
        "variants": {"oracle": {"method": "fedni", "fusing": {"nodes": "true"}, "graph": {"scope": "local"}}},
        "experiments": {"methods": {"variants": ["oracle"]}},
    }
    with pytest.raises(UserError, match=r"variants\.oracle\.fusing\.nodes: `true` .*expected `graph.scope: glob"):
        load_plan(config)


def test_the_log_warns_of_a_graph_without_generated_nodes(cut_graph, caplog):
    inputs, _ = cut_graph

    class Nothing(Generator):
        def counts(self):
            return np.full(60, 0.24)

    assert len(fuse(inputs, Nothing(inputs), FusingSettings(), None).parent) == 0
    assert "no node is generated" in caplog.text and "0.24" in caplog.text


def test_the_log_has_the_number_of_nodes_under_the_cap(cut_graph, caplog):
    inputs, _ = cut_graph
    with caplog.at_level("INFO"):
        fuse(inputs, Generator(inputs), FusingSettings(cap=0.5), None)
    assert (
        "30 nodes for 60 subjects, of 120.0 missing neighbours expected (mean 2.00; cap: 0.5 a subject)" in caplog.text
    )
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
