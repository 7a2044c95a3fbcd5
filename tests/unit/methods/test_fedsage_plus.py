"""FedSage+'s classifier: GraphSAGE on fused graphs, federated."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.nn import SAGEConv

from brainfed.engines.stacked import _training as training
from brainfed.graphs import Graph, neighbour_mean
from brainfed.methods import METHODS, FederatedClassifierSettings
from brainfed.methods.fedsage import train as fedsage_plus
from brainfed.methods.fedsage.declaration import FEDSAGE, FEDSAGE_PLUS
from brainfed.runtime.jobs import Run
from brainfed.samples import with_generated
from reference.fedsage import train_sage_by_loops
from support.samples.fused_inputs import with_fused, without_nodes
from support.samples.method_inputs import method_inputs

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 3, "local_epochs": 4, "learning_rate": 0.01}
SETTINGS = FederatedClassifierSettings(**SCHEDULE, hidden=(8, 4))


def test_it_declares_the_generator_and_how_its_nodes_join():
    assert METHODS["fedsage-plus"] is FEDSAGE_PLUS
    assert FEDSAGE_PLUS.options["inpainting"] is FEDSAGE
    assert FEDSAGE_PLUS.options["fused"] == {"cap": None, "rounding": "truncate", "edges": "binary"}
    assert (FEDSAGE_PLUS.title, FEDSAGE_PLUS.family, FEDSAGE_PLUS.needs, FEDSAGE_PLUS.capabilities.gpu) == (
        "FedSage+",
        "federated",
        ("features", "fused"),
        True,
    )


def test_the_mean_is_over_neighbours_without_weights_and_self_loops():
    # 0 - 1 with weight 5, 0 - 2 with weight 1, node 3 alone; self-loops everywhere.
    row, column = np.array([0, 0, 0, 1, 1, 2, 2, 3]), np.array([0, 1, 2, 0, 1, 0, 2, 3])
    graph = Graph(row, column, np.array([1, 5, 1, 5, 1, 1, 1, 1], dtype=np.float32), 4)
    dense = np.zeros((4, 4))
    found = neighbour_mean(graph)
    dense[found[0], found[1]] = found[2]
    assert dense.tolist() == [[0, 0.5, 0.5, 0], [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    layer = SAGEConv(3, 2, aggr="mean").double()
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 3)))
    edges = torch.from_numpy(np.stack([column, row])[:, row != column])
    by_hand = torch.from_numpy(dense) @ x @ layer.lin_l.weight.T + layer.lin_l.bias + x @ layer.lin_r.weight.T
    torch.testing.assert_close(layer(x, edges), by_hand)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_stacked_training_equals_the_loop(protocol):
    plain = method_inputs(subjects=61, dimensions=12, institutions=3, folds=4, effect=0.5, seed=3, protocol=protocol)
    inputs = with_fused(plain)
    found = fedsage_plus.train(inputs, SETTINGS, DOUBLE).scores[..., 1]
    expected = train_sage_by_loops(with_generated(inputs), hidden=(8, 4), noise=0.01, **SCHEDULE)[:, :61]
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)


def test_a_subject_without_neighbours_is_scored_from_its_own_features():
    plain = method_inputs(subjects=30, dimensions=6, institutions=2, folds=3, seed=2)
    graph = plain.graphs[0]
    apart = (graph.row == graph.column) | ((graph.row != 4) & (graph.column != 4))
    lonely = replace(plain, graphs=(Graph(graph.row[apart], graph.column[apart], graph.weight[apart], 30),))
    found = fedsage_plus.train_sage(lonely, SETTINGS, DOUBLE).scores[..., 1]
    expected = train_sage_by_loops(lonely, hidden=(8, 4), noise=0.01, **SCHEDULE)
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_generated_features_reach_real_nodes_through_edges_to_them_alone(protocol):
    inputs = with_fused(method_inputs(60, 12, protocol=protocol))
    random = np.random.default_rng(0)

    def scores(change):
        fused = tuple(change(graph) for graph in inputs.fused)
        return fedsage_plus.train(replace(inputs, fused=fused), SETTINGS, Run()).round_scores[..., 1]

    def noisy(graph):
        return replace(graph, features=random.standard_normal(graph.features.shape).astype(np.float32))

    def one_way(graph):
        """Original -> generated only, as in two ports of the method."""
        kept = (graph.row >= 60) | (graph.column < 60)
        return replace(graph, row=graph.row[kept], column=graph.column[kept], weight=graph.weight[kept])

    tested = inputs.fold == np.arange(inputs.folds)[:, None]
    assert (scores(lambda graph: graph)[:, tested] != scores(noisy)[:, tested]).any(axis=1).all()
    assert scores(one_way).tobytes() == scores(lambda graph: one_way(noisy(graph))).tobytes()


def test_crossings_equal_a_count_by_hand():
    inputs = with_fused(method_inputs(60, 12))
    rows = {(row["name"], row["direction"]): row for row in fedsage_plus.train(inputs, SETTINGS, Run()).crossings}
    sizes = {"weight-0": 12 * 8, "weight-own-0": 12 * 8, "weight-1": 8 * 4, "weight-own-1": 8 * 4, "weight-2": 4 * 2}
    sizes |= {"bias-0": 8, "bias-1": 4, "bias-2": 2}
    assert {name for name, _ in rows} == set(sizes)
    assert set(sizes) <= set(FEDSAGE_PLUS.crossing.tensors)
    for (name, _), row in rows.items():
        assert row["bytes"] == 3 * 3 * sizes[name] * 4
        assert "subjects" not in str(row["axes"])


def test_parameters_are_those_of_both_weights_of_each_layer():
    outcome = fedsage_plus.train(with_fused(method_inputs(60, 12)), SETTINGS, Run())
    assert outcome.counts["parameters"] == 2 * 12 * 8 + 8 + 2 * 8 * 4 + 4 + 4 * 2 + 2
    per_step = 2 * 2 * (60 + 30) * 12 * 2 * 8
    assert outcome.counts["first_layer_operations"] == 3 * 4 * per_step * 3


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_folds_trained_in_chunks_give_the_same_scores(protocol, monkeypatch):
    inputs = with_fused(method_inputs(40, 11, institutions=3, folds=4, protocol=protocol))
    expected = fedsage_plus.train(inputs, SETTINGS, DOUBLE)
    monkeypatch.setattr(training, "STACK_BYTES", 1)
    found = fedsage_plus.train(inputs, SETTINGS, DOUBLE)
    np.testing.assert_allclose(found.round_scores[..., 1], expected.round_scores[..., 1], atol=1e-12, rtol=0)
    assert found.crossings == expected.crossings


def test_an_interrupted_training_resumes_to_the_same_bytes(resumed):
    inputs = with_fused(method_inputs(40, 11, institutions=3, folds=4))
    expected = fedsage_plus.train(inputs, SETTINGS, Run())
    again, rounds = resumed(lambda run: fedsage_plus.train(inputs, SETTINGS, run), 3)
    assert rounds == [3]
    assert again.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert again.crossings == expected.crossings


def test_an_unseen_site_is_scaled_by_the_others_moments_and_scored_by_the_global_model():
    inputs = with_fused(method_inputs(45, 9, institutions=3, split="leave-one-site-out"))
    outcome = fedsage_plus.train(inputs, SETTINGS, Run())
    tensors = {(row["name"], row["direction"]): row["tensors"] for row in outcome.crossings}
    assert np.isfinite(outcome.scores[..., 1][inputs.fold, np.arange(45)]).all()
    assert tensors["feature-mean", "upload"] == tensors["feature-sd", "upload"] == 2
    assert tensors["weight-own-0", "upload"] == 2 * 3


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_without_generated_nodes_every_fold_still_has_its_own_graph(protocol):
    plain = method_inputs(subjects=61, dimensions=12, folds=4, effect=0.5, seed=3, protocol=protocol)
    inputs = without_nodes(with_fused(plain))
    found = fedsage_plus.train(inputs, SETTINGS, DOUBLE).scores[..., 1]
    expected = train_sage_by_loops(with_generated(inputs), hidden=(8, 4), noise=0.01, **SCHEDULE)
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)
