"""Random inpainting: numbers, features, phenotypes and edges (FedNI Fig. 4)."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.inpainting import FusingSettings, fuse
from brainfed.runtime import Streams
from support.samples.fake_generator import FakeGenerator, cohort, dense, inputs_of

RANDOM = FusingSettings(cap=None, nodes="random")


def test_random_inpainting_has_the_generators_numbers_and_draws_no_generated_node():
    inputs, generator = cohort(7)
    generated = fuse(inputs, generator, FusingSettings(), max_generated=3)
    requests = len(generator.requests)
    random = fuse(inputs, generator, FusingSettings(nodes="random"), max_generated=3)
    assert requests == len(generator.requests) == 1
    np.testing.assert_array_equal(random.parent, generated.parent)
    np.testing.assert_array_equal(random.count, generated.count)


def test_random_features_are_normal_as_in_the_institution():
    rng = np.random.default_rng(0)
    mean, sd = np.array([[-5.0, 2.0, 0.0], [40.0, 0.0, 1.0]]), np.array([[1.0, 0.1, 0.0], [3.0, 2.0, 0.5]])
    institution = np.arange(80) % 2
    features = mean[institution] + sd[institution] * rng.standard_normal((80, 3))
    fused = fuse(
        inputs_of(features, institution), FakeGenerator([50.0] * 80, np.zeros((0, 3))), RANDOM, max_generated=50
    )
    for m in range(2):
        drawn, real = fused.features[fused.institution == m], features[institution == m]
        assert len(drawn) == 2000
        np.testing.assert_allclose(drawn.mean(axis=0), real.mean(axis=0), atol=5 * real.std(axis=0).max() / 2000**0.5)
        np.testing.assert_allclose(drawn.std(axis=0), real.std(axis=0), rtol=0.08, atol=1e-6)
        within = np.abs(drawn[:, 0] - real[:, 0].mean()) < real[:, 0].std()
        assert within.mean() == pytest.approx(0.683, abs=0.04)


def test_random_phenotypes_are_those_of_one_training_subject_of_the_institution():
    inputs, generator = cohort(8, inductive=True)
    fused = fuse(inputs, generator, RANDOM, max_generated=3)
    for m in range(3):
        members = inputs.members(m)
        people = {(inputs.sex[i], np.nan_to_num(inputs.age[i])) for i in members}
        mine = np.flatnonzero(fused.institution == m)
        assert {(fused.sex[i], np.nan_to_num(fused.age[i])) for i in mine} <= people


def test_random_nodes_have_k_edges_with_weights_of_the_institution():
    inputs, generator = cohort(9, k=4)
    fused = fuse(inputs, generator, RANDOM, max_generated=3)
    adjacency = dense(fused, 30 + len(fused.parent))
    outgoing = adjacency[30:, :30]
    assert (np.count_nonzero(outgoing, axis=1) == 4).all()
    assert not (adjacency[30:, 30:] - np.eye(len(fused.parent))).any()
    graph = inputs.graph
    for m in range(3):
        among = (inputs.institution[graph.row] == m) & (graph.row != graph.column)
        mine = outgoing[fused.institution == m]
        assert set(mine[mine > 0]) <= set(graph.weight[among].astype(float))
    # Not always the same partners.
    assert len({tuple(np.flatnonzero(row)) for row in outgoing}) > len(outgoing) / 2


def test_random_edges_of_a_small_institution_reach_every_subject_once():
    # Nobody agrees with anybody, so there is no real edge to draw a weight from.
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], sex=[-1, -1, -1], phenotypes=("sex",), k=10)
    adjacency = dense(fuse(inputs, FakeGenerator([0, 1, 0], np.zeros((0, 1))), RANDOM, max_generated=10), 4)
    assert adjacency[3].tolist() == [1, 1, 1, 1]


def test_random_nodes_differ_by_repeat_and_by_fold():
    inputs, generator = cohort(11)
    fold, repeat = replace(inputs, part="fold-1"), replace(inputs, streams=Streams(11, repeat=1))
    features = [fuse(given, generator, RANDOM, max_generated=3).features for given in (inputs, fold, repeat)]
    assert not np.isclose(features[0], features[1]).any()
    assert not np.isclose(features[0], features[2]).any()


def test_random_nodes_do_not_depend_on_how_edges_are_made():
    inputs, generator = cohort(12)
    binary = replace(RANDOM, edges="binary")
    first, second = (fuse(inputs, generator, settings, max_generated=3) for settings in (RANDOM, binary))
    np.testing.assert_array_equal(first.features, second.features)
    np.testing.assert_array_equal(first.age, second.age)
