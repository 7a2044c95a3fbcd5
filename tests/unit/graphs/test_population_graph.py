"""The population graph equals the plain dense one and keeps the invariants of both protocols."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.graphs import GraphSettings, build_graph
from brainfed.runtime import Streams
from reference.population_graph import dense_graph

STREAMS = Streams(seed=3)
SCOPES = ("local", "global", "global_cut")


def subjects(seed, n=30, d=8, institutions=3):
    """Random subjects with some missing phenotypes."""
    rng = np.random.default_rng(seed)
    return {
        "features": rng.normal(size=(n, d)),
        "institution": np.arange(n) % institutions,
        "site": rng.integers(-1, 3, n),
        "sex": rng.integers(-1, 2, n),
        "age": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(8, 20, n)),
    }


def build(cohort, **options):
    training = options.pop("training", None)
    entries = options.pop("block_entries", 1 << 22)
    settings = GraphSettings(**{"k": 3, "scope": "local", "embedding_dimensions": 4, **options})
    return build_graph(**cohort, settings=settings, streams=STREAMS, training=training, block_entries=entries)


def dense(graph):
    n = len(graph.embedding)
    adjacency = np.zeros((n, n))
    adjacency[graph.row, graph.column] = graph.weight
    return adjacency


def plain(cohort, known, apart, dimensions=4, k=3, phenotypes=("sex", "age")):
    """Slow graph of one part, with principal components by an eigendecomposition."""
    features = cohort["features"]
    mean = features[known].mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov(features[known].T, bias=True))
    axes = vectors[:, np.argsort(values)[::-1][: min(dimensions, len(known) - 1)]]
    embedding = (features - mean) @ axes
    chosen = {name: cohort[name].astype(float) for name in phenotypes}
    return dense_graph(embedding, chosen, known, apart, k=k, age_gap=2.0, self_weight=1.0)


@given(seed=st.integers(0, 10**6), entries=st.sampled_from([1, 45, 10**6]))
@hypothesis_settings(max_examples=15, deadline=None)
def test_a_graph_by_blocks_equals_the_plain_dense_graph(seed, entries):
    cohort = subjects(seed)
    found = build(cohort, scope="global", phenotypes=("sex", "age", "site"), block_entries=entries)
    expected = plain(cohort, list(range(30)), [], phenotypes=("sex", "age", "site"))
    np.testing.assert_array_equal(dense(found) > 0, expected > 0)
    np.testing.assert_allclose(dense(found), expected, atol=1e-6)


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("inductive", [False, True])
def test_each_scope_equals_the_plain_dense_graph(scope, inductive):
    cohort = subjects(11)
    institution = cohort["institution"]
    training = np.random.default_rng(2).random(30) < 0.7 if inductive else None
    fits = np.ones(30, bool) if training is None else training
    expected = np.zeros((30, 30))
    for part in [np.flatnonzero(institution == m) for m in range(3)] if scope == "local" else [np.arange(30)]:
        expected += plain(cohort, part[fits[part]].tolist(), part[~fits[part]].tolist())
    if scope == "global_cut":
        expected[institution[:, None] != institution[None, :]] = 0
    found = build(cohort, scope=scope, training=training)
    np.testing.assert_allclose(dense(found), expected, atol=1e-6)


@given(seed=st.integers(0, 10**6), scope=st.sampled_from(SCOPES), k=st.integers(1, 12), shuffle=st.booleans())
@hypothesis_settings(max_examples=40, deadline=None)
def test_transductive_graphs_are_symmetric_sorted_and_positive(seed, scope, k, shuffle):
    cohort = subjects(seed)
    graph = build(cohort, scope=scope, k=k, shuffle=shuffle, self_weight=0.5)
    adjacency = dense(graph)
    np.testing.assert_array_equal(adjacency, adjacency.T)
    np.testing.assert_array_equal(np.diag(adjacency), 0.5)
    assert (graph.weight > 0).all()
    assert len(set(zip(graph.row, graph.column, strict=True))) == len(graph.row)
    assert (np.lexsort((graph.column, graph.row)) == np.arange(len(graph.row))).all()
    if scope != "global":
        assert (cohort["institution"][graph.row] == cohort["institution"][graph.column]).all()
    assert graph.weight.dtype == np.float32
    assert graph.row.dtype == graph.column.dtype == np.int64
    assert graph.embedding.dtype == np.float32


def test_every_row_has_its_k_nearest_and_the_rows_that_chose_it():
    # Five subjects of one sex on a line; the one at 10 is remote and has a neighbour.
    cohort = {
        "features": np.array([[0.0], [1.0], [2.1], [3.3], [10.0]]),
        "institution": np.zeros(5, np.int64),
        "site": np.zeros(5, np.int64),
        "sex": np.zeros(5, np.int64),
        "age": np.full(5, np.nan),
    }
    graph = build(cohort, k=1, self_weight=0.0)
    assert list(zip(graph.row.tolist(), graph.column.tolist(), strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3),
    ]  # fmt: skip
    # Pairwise distances 1, 2.1, 3.3, 10, 1.1, 2.3, 9, 1.2, 7.9 and 6.7 sum to 44.6.
    assert graph.sigma == (pytest.approx(4.46),)
    assert graph.weight[0] == pytest.approx(np.exp(-1 / (2 * 4.46**2)))


def test_a_subject_without_known_phenotypes_has_its_self_loop_only():
    cohort = subjects(5)
    cohort["sex"][4] = -1
    cohort["age"][4] = np.nan
    graph = build(cohort)
    assert graph.column[graph.row == 4].tolist() == [4]
    assert graph.row[graph.column == 4].tolist() == [4]


def test_a_local_graph_does_not_depend_on_other_institutions():
    cohort = subjects(8)
    before = build(cohort)
    elsewhere = cohort["institution"] != 1
    cohort["features"][elsewhere] *= 100
    cohort["sex"][elsewhere] = 1
    after = build(cohort)
    np.testing.assert_array_equal(dense(after)[~elsewhere], dense(before)[~elsewhere])
    np.testing.assert_array_equal(after.embedding[~elsewhere], before.embedding[~elsewhere])
    assert after.sigma[1] == before.sigma[1]
    assert after.sigma[0] != before.sigma[0]


def test_global_cut_is_the_global_graph_without_edges_between_institutions():
    cohort = subjects(8)
    whole, cut = dense(build(cohort, scope="global")), dense(build(cohort, scope="global_cut"))
    inside = cohort["institution"][:, None] == cohort["institution"][None, :]
    assert whole[~inside].any()
    np.testing.assert_array_equal(cut, np.where(inside, whole, 0))


@given(seed=st.integers(0, 10**6), shuffle=st.booleans(), inductive=st.booleans())
@hypothesis_settings(max_examples=25, deadline=None)
def test_kept_and_cut_edges_together_are_the_global_graph(seed, shuffle, inductive):
    cohort = subjects(seed)
    training = np.random.default_rng(seed).random(30) < 0.7 if inductive else None
    whole = build(cohort, scope="global", shuffle=shuffle, training=training)
    graph = build(cohort, scope="global_cut", shuffle=shuffle, training=training)
    removed = np.zeros((30, 30))
    removed[graph.cut.row, graph.cut.column] = graph.cut.weight
    np.testing.assert_allclose(dense(graph) + removed, dense(whole), rtol=1e-6)
    assert len(graph.row) + len(graph.cut.row) == len(whole.row)
    assert (cohort["institution"][graph.cut.row] != cohort["institution"][graph.cut.column]).all()
    assert (np.lexsort((graph.cut.column, graph.cut.row)) == np.arange(len(graph.cut.row))).all()
    if training is None:
        np.testing.assert_array_equal(removed, removed.T)
    else:
        assert training[graph.cut.column].all()


def test_the_cut_removes_edges_between_institutions():
    # Four subjects on a line, each joined to the next; the two in the middle belong to different institutions.
    cohort = {
        "features": np.array([[0.0], [1.0], [1.9], [2.5]]),
        "institution": np.array([0, 0, 1, 1]),
        "site": np.zeros(4, np.int64),
        "sex": np.zeros(4, np.int64),
        "age": np.full(4, np.nan),
    }
    graph = build(cohort, k=1, self_weight=0.0, scope="global_cut")
    # The nearest of 0, 1, 2, 3 are 1, 2, 3, 2: edges 0-1, 1-2 and 2-3, of which 1-2 is cut.
    assert list(zip(graph.row.tolist(), graph.column.tolist(), strict=True)) == [(0, 1), (1, 0), (2, 3), (3, 2)]
    assert list(zip(graph.cut.row.tolist(), graph.cut.column.tolist(), strict=True)) == [(1, 2), (2, 1)]
    # Pairwise distances 1, 1.9, 2.5, 0.9, 1.5 and 0.6 have the mean 1.4.
    assert graph.cut.weight == pytest.approx([np.exp(-(0.9**2) / (2 * 1.4**2))] * 2)


@pytest.mark.parametrize("scope", ["local", "global"])
def test_other_scopes_cut_nothing(scope):
    assert build(subjects(8), scope=scope).cut is None


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("changed", ["features", "phenotypes"])
def test_a_test_subject_moves_no_other_row_of_an_inductive_graph(scope, shuffle, changed):
    cohort = subjects(21)
    training = np.arange(30) % 4 != 0
    before = build(cohort, scope=scope, shuffle=shuffle, training=training)
    subject = 8
    if changed == "features":
        cohort["features"][subject] = -cohort["features"][subject] + 3
    else:
        cohort["sex"][subject] = 1 - max(cohort["sex"][subject], 0)
        cohort["age"][subject] = 14.0
    after = build(cohort, scope=scope, shuffle=shuffle, training=training)
    others = np.arange(30) != subject
    assert (dense(before)[subject] != dense(after)[subject]).any()
    np.testing.assert_array_equal(dense(before)[others], dense(after)[others])
    np.testing.assert_array_equal(before.embedding[others], after.embedding[others])
    assert before.sigma == after.sigma


@given(seed=st.integers(0, 10**6), scope=st.sampled_from(SCOPES), shuffle=st.booleans())
@hypothesis_settings(max_examples=25, deadline=None)
def test_training_subjects_alone_send_messages(seed, scope, shuffle):
    cohort = subjects(seed)
    training = np.random.default_rng(seed).random(30) < 0.7
    training[:3] = True
    graph = build(cohort, scope=scope, shuffle=shuffle, training=training)
    adjacency = dense(graph)
    np.fill_diagonal(adjacency, 0)
    assert not adjacency[:, ~training].any()
    assert (np.count_nonzero(adjacency[~training], axis=1) <= 3).all()
    among = adjacency[np.ix_(training, training)]
    np.testing.assert_array_equal(among, among.T)


def test_an_institution_without_training_subjects_has_self_loops_only():
    cohort = subjects(4)
    training = cohort["institution"] != 2
    graph = build(cohort, training=training)
    unseen = np.flatnonzero(~training)
    adjacency = dense(graph)
    np.testing.assert_array_equal(adjacency[unseen], np.eye(30)[unseen])
    assert not graph.embedding[unseen].any()
    assert graph.sigma[2] == 0


def test_an_unseen_institution_attaches_to_the_others_under_global_scope():
    cohort = subjects(4)
    training = cohort["institution"] != 2
    adjacency = dense(build(cohort, scope="global", training=training))
    assert (adjacency[~training][:, training] > 0).any()


def test_shuffled_edges_keep_degrees_but_not_neighbours():
    cohort = subjects(6)
    straight, shuffled = dense(build(cohort)), dense(build(cohort, shuffle=True))
    assert (straight != shuffled).any()
    for m in range(3):
        members = np.flatnonzero(cohort["institution"] == m)
        degrees = [np.sort(np.count_nonzero(a[members], axis=1)) for a in (straight, shuffled)]
        np.testing.assert_array_equal(*degrees)
    np.testing.assert_allclose(np.sort(straight, axis=None), np.sort(shuffled, axis=None))
    np.testing.assert_array_equal(shuffled, dense(build(cohort, shuffle=True)))


def test_identical_subjects_are_joined():
    cohort = subjects(1, n=4, institutions=1)
    cohort["features"][:] = 1.0
    cohort["sex"][:] = 0
    cohort["age"][:] = np.nan
    graph = build(cohort, k=2)
    assert graph.sigma == (0.0,)
    assert (graph.weight == 1).all()
    assert graph.column[graph.row == 3].tolist() == [0, 1, 3]
    assert graph.column[graph.row == 0].tolist() == [0, 1, 2, 3]
