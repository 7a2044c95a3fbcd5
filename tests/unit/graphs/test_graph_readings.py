"""Correlation distances, widths of the kernel, the embedding `none`, graphs without self-loops, site in the graph."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform

from brainfed.configuration import validate
from brainfed.graphs import Graph, GraphSettings, Nodes, build_graph, mean_pairwise_distance, similarity
from brainfed.graphs import _neighbours as neighbours
from brainfed.graphs import _population as population
from brainfed.graphs._neighbours import imaging_similarity
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.runtime import Streams, UserError
from brainfed.runtime.jobs import Run
from reference.population_graph import dense_graph, mean_correlation_distance
from support.samples.method_inputs import method_inputs

STREAMS = Streams(seed=3)

# r(1, 2) = 1, r(1, 3) = -1, r(1, 4) = 0; the last subject does not vary.
PROFILES = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 2.0, 1.0], [1.0, 0.0, 1.0], [5.0, 5.0, 5.0]])


def subjects(seed, n=30, d=8):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    features[7] = 0.25  # no correlation with any other
    return {
        "features": features,
        "institution": np.arange(n) % 3,
        "site": rng.integers(-1, 3, n),
        "sex": rng.integers(-1, 2, n),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(8, 20, n)),
    }


def build(cohort, training=None, entries=1 << 22, labels=None, **options):
    settings = GraphSettings(**{"k": 3, "scope": "global", "embedding": "none", **options})
    return build_graph(
        **cohort, settings=settings, streams=STREAMS, training=training, block_entries=entries, labels=labels
    )


def dense(graph):
    adjacency = np.zeros((len(graph.embedding),) * 2)
    adjacency[graph.row, graph.column] = graph.weight
    return adjacency


def plain(cohort, known, apart, features=None, phenotypes=("sex", "age"), **options):
    chosen = {name: cohort[name].astype(float) for name in phenotypes}
    features = cohort["features"] if features is None else features
    return dense_graph(features, chosen, known, apart, **{"k": 3, "age_gap": 2.0, "self_weight": 1.0, **options})


def test_correlation_distance_by_hand():
    nodes = Nodes.of(PROFILES, {}, "correlation")
    found = similarity(nodes, nodes, 1.0, 2.0)
    # d = 0, 2, 1 and 1: exp(-d^2 / 2).
    np.testing.assert_allclose(found[0], [1, 1, np.exp(-2), np.exp(-0.5), np.exp(-0.5)], atol=1e-12)
    np.testing.assert_allclose(found[4], np.exp(-0.5))


def test_the_kernel_equals_that_of_the_released_code():
    """exp(-d^2 / (2 sigma^2)) with scipy's correlation distance and sigma its mean (Parisot et al. 2018)."""
    features = np.random.default_rng(0).normal(size=(40, 25)).astype(np.float32)
    pairs = pdist(features.astype(np.float64), metric="correlation")
    sigma = mean_pairwise_distance(features.astype(np.float64), distance="correlation")
    assert sigma == pytest.approx(pairs.mean(), rel=1e-12)
    nodes = Nodes.of(features.astype(np.float64), {}, "correlation")
    expected = np.exp(-(squareform(pairs) ** 2) / (2 * sigma**2))
    found = imaging_similarity(nodes.embedding, nodes.embedding, sigma, "correlation")
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("entries", [1, 45, 10**6])
def test_the_mean_distance_does_not_depend_on_the_block(entries):
    features = subjects(1)["features"]
    found = mean_pairwise_distance(features, entries, "correlation")
    assert found == pytest.approx(mean_correlation_distance(features), rel=1e-12)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("inductive", [False, True])
@pytest.mark.parametrize("distance", ["euclidean", "correlation"])
def test_a_graph_of_whole_features_equals_the_plain_one(distance, inductive, sigma):
    cohort = subjects(5)
    training = np.random.default_rng(2).random(30) < 0.7 if inductive else None
    fits = np.ones(30, bool) if training is None else training
    expected = plain(
        cohort, np.flatnonzero(fits).tolist(), np.flatnonzero(~fits).tolist(), kind=distance, multiple=sigma
    )
    for entries in (1, 45, 10**6):
        found = build(cohort, training, entries, distance=distance, sigma=sigma)
        np.testing.assert_array_equal(dense(found) > 0, expected > 0)
        np.testing.assert_allclose(dense(found), expected, atol=1e-6)
        assert found.embedding.shape == cohort["features"].shape


def test_the_embedding_rfe_is_compared_by_correlation():
    cohort, labels = subjects(6, d=12), np.arange(30) % 2
    found = build(cohort, labels=labels, embedding="rfe", embedding_dimensions=5, distance="correlation")
    kept = cohort["features"][:, found.selected[0]]
    scores = (kept - kept.mean(axis=0)) / kept.std(axis=0)
    np.testing.assert_allclose(dense(found), plain(cohort, list(range(30)), [], scores, kind="correlation"), atol=1e-6)


def test_scaled_columns_are_z_scores_and_a_constant_one_is_ignored():
    cohort = subjects(8)
    cohort["features"][:, 2] = 7.0
    training = np.random.default_rng(2).random(30) < 0.7
    cohort["features"][~training, 2] = 9.0
    found = build(cohort, training, scaling="columns")
    known = cohort["features"][training]
    deviation = known.std(axis=0)
    deviation[2] = np.inf
    np.testing.assert_allclose(found.embedding, (cohort["features"] - known.mean(axis=0)) / deviation, atol=1e-5)


def test_correlation_graphs_of_many_and_few_subjects_are_equal(monkeypatch):
    """The search by products uses Euclidean distances; for correlations, blocks cover all pairs."""
    cohort = subjects(9)
    few = build(cohort, distance="correlation")
    monkeypatch.setattr(neighbours, "MANY", 10)
    monkeypatch.setattr(neighbours, "_nearest_of_probable", None)
    many = build(cohort, entries=60, distance="correlation")
    np.testing.assert_array_equal(dense(many), dense(few))
    assert many.sigma == pytest.approx(few.sigma, rel=1e-12)


@pytest.mark.parametrize("multiple", [0.5, 2.0])
def test_sigma_is_a_multiple_of_the_mean_distance_by_products_too(monkeypatch, multiple):
    cohort = subjects(9)
    monkeypatch.setattr("brainfed.graphs._neighbours.MANY", 10)
    found = build(cohort, sigma=multiple)
    np.testing.assert_allclose(dense(found), plain(cohort, list(range(30)), [], multiple=multiple), atol=1e-6)


def test_site_is_a_phenotype_like_the_others():
    cohort = subjects(4)
    found = build(cohort, phenotypes=("sex", "site"))
    np.testing.assert_allclose(dense(found), plain(cohort, list(range(30)), [], phenotypes=("sex", "site")), atol=1e-6)


def test_correlations_of_components_are_refused():
    with pytest.raises(UserError, match=r"distance: expected euclidean with embedding pca, found correlation.*choose"):
        validate(GraphSettings, {"distance": "correlation"}, "graph")


def test_correlations_of_two_values_are_refused():
    with pytest.raises(UserError, match=r"embedding_dimensions: expected 3 or more with distance correlation, found 2"):
        validate(GraphSettings, {"distance": "correlation", "embedding": "rfe", "embedding_dimensions": 2}, "graph")


def test_components_do_not_replace_features_under_the_correlation_distance():
    labels = np.where(np.arange(30) % 3 == 1, -1, np.arange(30) % 2)  # the second institution has no training label
    options = {"labels": labels, "embedding": "rfe", "embedding_dimensions": 4, "scope": "local"}
    assert len(build(subjects(3), **options).selected[1]) == 0
    with pytest.raises(UserError, match=r"graph\.distance: expected training labels of both classes"):
        build(subjects(3), **options, distance="correlation")


def test_too_many_whole_features_are_refused(monkeypatch):
    monkeypatch.setattr(population, "COMPARED_WHOLE", 100)
    with pytest.raises(UserError, match=r"graph.embedding: expected at most 100 numbers.*30 subjects of 8 features"):
        build(subjects(0))


def test_without_self_loops_a_subject_without_neighbours_has_a_score():
    """Its row is empty, so the biases alone decide; it does not affect other scores."""
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3, seed=2)
    graph = inputs.graphs[0]
    apart = (graph.row != graph.column) & (graph.row != 4) & (graph.column != 4)
    bare = Graph(graph.row[apart], graph.column[apart], graph.weight[apart], graph.nodes)
    changed = inputs.features[0].copy()
    changed[4] += 3
    settings = FedGCNSettings(rounds=2, local_epochs=2, hidden=(8, 4), standardise="none")
    scores = [
        train_fedgcn(type(inputs)(**{**vars(inputs), "graphs": (bare,), "features": (features,)}), settings, Run())
        for features in (inputs.features[0], changed)
    ]
    tested = np.arange(len(inputs.subjects))
    assert np.isfinite(scores[0].scores[..., 1][inputs.fold, tested]).all()
    np.testing.assert_array_equal(scores[0].scores[..., 1], scores[1].scores[..., 1])
