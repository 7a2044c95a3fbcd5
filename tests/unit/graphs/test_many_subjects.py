"""Computations by blocks and products for many subjects equal those in one piece for few."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.graphs import GraphSettings, Nodes, build_graph, mean_pairwise_distance, nearest
from brainfed.graphs import _embedding as embedding
from brainfed.graphs import _neighbours as neighbours
from brainfed.graphs import _population as population
from brainfed.graphs._embedding import fit_projection, fit_scaled_projection
from brainfed.graphs._neighbours import mean_distance_by_products
from brainfed.runtime import Streams

PHENOTYPES = [(), ("sex",), ("age",), ("site",), ("sex", "age"), ("sex", "age", "site")]


@pytest.fixture
def small_tiles(monkeypatch):
    """Use products for any number of subjects, in tiles of 7 x 16 pairs."""
    for name, value in {"MANY": 0, "TILE_ROWS": 7, "TILE_COLUMNS": 16}.items():
        monkeypatch.setattr(neighbours, name, value)


def random_nodes(rng, count, phenotypes, dimensions=5):
    """Subjects with duplicates, ages at the limit of the gap, and missing values."""
    points = rng.standard_normal((count, dimensions)) * np.linspace(5, 0.5, dimensions)
    points[rng.integers(0, count, count // 4)] = points[0]
    known = {
        "sex": rng.integers(-1, 2, count),
        "site": rng.integers(-1, 4, count),
        "age": np.where(rng.random(count) < 0.1, np.nan, np.round(rng.uniform(8, 20, count), 1)),
    }
    return Nodes(points, {name: known[name] for name in phenotypes})


def assert_same_edges(found, expected):
    for name in ("row", "column", "weight"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(
    seed=st.integers(0, 10**6), count=st.integers(2, 60), k=st.integers(1, 12), phenotypes=st.sampled_from(PHENOTYPES)
)  # fmt: skip
@hypothesis_settings(max_examples=60, deadline=None)
def test_edges_by_products_are_those_of_the_plain_search_to_the_bit(seed, count, k, phenotypes):
    rng = np.random.default_rng(seed)
    nodes, others = random_nodes(rng, count, phenotypes), random_nodes(rng, 40, phenotypes)
    sigma = float(rng.uniform(0.5, 5))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "MANY", 0)
        patch.setattr(neighbours, "TILE_ROWS", 7)
        patch.setattr(neighbours, "TILE_COLUMNS", 16)
        found = [nearest(nodes, among, sigma, k=k, age_gap=2.0) for among in (None, others)]
    for edges, among in zip(found, (None, others), strict=True):
        assert_same_edges(edges, nearest(nodes, among, sigma, k=k, age_gap=2.0))


def test_a_subject_beyond_all_others_has_the_plain_edges(small_tiles):
    # Its similarities underflow to equal numbers or to 0.
    nodes = random_nodes(np.random.default_rng(5), 80, ("sex",), dimensions=3)
    nodes.embedding[3] = [37.0, 0, 0]
    nodes.embedding[4] = [-39.0, 0, 0]
    for k in (3, 20):
        found = nearest(nodes, None, 1.0, k=k, age_gap=2.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(neighbours, "MANY", 10**9)
            assert_same_edges(found, nearest(nodes, None, 1.0, k=k, age_gap=2.0))


def test_no_queries_have_no_edges(small_tiles):
    nodes = random_nodes(np.random.default_rng(5), 20, ("sex",))
    assert len(nearest(nodes.take(slice(0, 0)), nodes, 1.0, k=3, age_gap=2.0).row) == 0


def test_few_pairs_are_weighed():
    rng = np.random.default_rng(1)
    nodes = Nodes(rng.standard_normal((6000, 8)), {"sex": rng.integers(0, 2, 6000), "age": rng.uniform(8, 80, 6000)})
    pairs = sum(len(row) for row, _ in neighbours.probable_neighbours(nodes, nodes, 3.0, k=10, age_gap=2.0))
    assert 10 * 6000 <= pairs < 10.1 * 6000


def test_a_remote_subject_does_not_widen_the_search_of_others():
    rng = np.random.default_rng(1)
    nodes = Nodes(rng.standard_normal((6000, 8)), {"sex": rng.integers(0, 2, 6000)})
    nodes.embedding[17] = 365
    rows = np.concatenate([row for row, _ in neighbours.probable_neighbours(nodes, nodes, 3.0, k=10, age_gap=2.0)])
    assert 10 * 5999 <= (rows != 17).sum() < 10.1 * 5999


def test_pairs_are_weighed_in_slices(small_tiles, monkeypatch):
    nodes = random_nodes(np.random.default_rng(5), 300, ("sex", "age"))
    nodes.embedding[3] = 365  # none of its similarities is above 0, so all pairs remain
    sizes, paired_similarity = [], neighbours.paired_similarity

    def paired(left, right, sigma, age_gap):
        sizes.append(len(left))
        return paired_similarity(left, right, sigma, age_gap)

    monkeypatch.setattr(neighbours, "paired_similarity", paired)
    found = nearest(nodes, None, 1.0, k=3, age_gap=2.0, entries=100)
    assert max(sizes) == 100 // 5
    monkeypatch.setattr(neighbours, "MANY", 10**9)
    assert_same_edges(found, nearest(nodes, None, 1.0, k=3, age_gap=2.0))


@pytest.mark.parametrize("count", [2, 7, 8, 33, 200])
def test_the_mean_distance_by_products_equals_that_of_the_pairs(small_tiles, count):
    points = np.random.default_rng(count).standard_normal((count, 4)) + 100
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "MANY", 10**9)
        expected = mean_pairwise_distance(points)
    assert mean_pairwise_distance(points) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fit", [fit_projection, fit_scaled_projection])
def test_components_by_blocks_equal_the_exact_ones(monkeypatch, fit, dtype):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 3)) * [100, 50, 25] @ rng.normal(size=(3, 200)) + rng.normal(size=(300, 200))
    features = (features + 30).astype(dtype)
    features[:, 7] = 4.0
    exact = fit(features, 3)
    monkeypatch.setattr(embedding, "EXACT_RANK", 100)
    monkeypatch.setattr(embedding, "BLOCK_ENTRIES", 200 * 37)
    found = fit(features, 3)
    accuracy = {np.float32: 1e-5, np.float64: 1e-9}[dtype]
    scale = np.abs(exact.components).max()
    np.testing.assert_allclose(found.components / scale, exact.components / scale, atol=accuracy)
    np.testing.assert_allclose(found.mean, exact.mean, rtol=1e-12)
    embedded = exact(features)
    np.testing.assert_allclose(found(features), embedded, atol=accuracy * np.abs(embedded).max())


@pytest.mark.parametrize("falling", [0.5, 0.0], ids=["slowly", "not"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_components_and_graph_of_slowly_falling_variances_equal_the_exact_ones(monkeypatch, falling, dtype):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(700, 550)) * np.arange(1, 551) ** -falling @ rng.normal(size=(550, 550))
    features = (features if falling else rng.normal(size=(700, 550))).astype(dtype)

    def graph():
        drawn = np.random.default_rng(2)
        made = build_graph(
            features, np.zeros(700, dtype=int), site=np.zeros(700, dtype=int), sex=drawn.integers(0, 2, 700),
            age=drawn.uniform(8, 60, 700), settings=GraphSettings(scope="global"), streams=Streams(0),
        )  # fmt: skip
        return set(zip(made.row.tolist(), made.column.tolist(), strict=True))

    exact, expected = fit_projection(features, 50).components, graph()
    monkeypatch.setattr(embedding, "EXACT_RANK", 100)
    found = fit_projection(features, 50).components
    assert (exact * found).sum(axis=1).min() > 0.999
    np.testing.assert_allclose(found @ found.T, np.eye(50), atol=1e-12)
    assert len(graph() & expected) >= 0.99 * len(expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_without_variance_are_left_out(monkeypatch, dtype):
    features = np.random.default_rng(2).normal(size=(60, 2)) @ np.random.default_rng(3).normal(size=(2, 50))
    features = features.astype(dtype)
    monkeypatch.setattr(embedding, "EXACT_RANK", 10)
    assert len(fit_projection(features, 5).components) == 2


@pytest.mark.parametrize("scope", ["local", "global", "global_cut"])
@pytest.mark.parametrize("inductive", [False, True])
def test_a_graph_by_products_equals_the_plain_one(small_tiles, scope, inductive):
    rng = np.random.default_rng(4)
    nodes = random_nodes(rng, 120, ("sex", "age", "site"))
    training = rng.random(120) < 0.7 if inductive else None

    def build():
        return build_graph(
            nodes.embedding, np.arange(120) % 3, **nodes.phenotypes, settings=GraphSettings(k=4, scope=scope),
            streams=Streams(0), training=training,
        )  # fmt: skip

    found = build()
    with pytest.MonkeyPatch.context() as patch:
        # The same sigma: products round otherwise than pairs.
        patch.setattr(population, "mean_pairwise_distance", lambda points, *_: mean_distance_by_products(points))
        patch.setattr(neighbours, "MANY", 10**9)
        expected = build()
    for name in ("row", "column", "weight", "embedding", "sigma"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
