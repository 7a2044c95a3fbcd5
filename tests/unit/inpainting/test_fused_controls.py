"""What stands in place of generated nodes, and whom a node is joined to where the graph was cut (FedNI Fig. 4)."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.configuration.loading import load_plan
from brainfed.graphs.neighbours.search import Edges
from brainfed.graphs.population.build import build_graph
from brainfed.inpainting.fusing.edges import neighbours_of_a_node
from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.fusing.true_neighbours import crossings_of
from brainfed.inpainting.inputs import Generated
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.errors import UserError
from support.samples.inpainting_inputs import inpainting_inputs


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
