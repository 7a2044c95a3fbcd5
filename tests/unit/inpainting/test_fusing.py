"""The fused graph: equality with a plain version, and invariants."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.inpainting import FusingSettings, fuse
from reference.population_graph import best_partners, mean_distance, pair_weight
from support.samples.fake_generator import NO_CAP, cohort, dense


def plain(inputs, fused):
    """The whole fused graph pair by pair; needs an embedding that keeps all distances."""
    settings, n, total = inputs.graph_settings, len(inputs.subjects), len(inputs.subjects) + len(fused.parent)
    position = np.concatenate([inputs.features, fused.features]).astype(float)
    known = {
        "sex": np.append(inputs.sex, fused.sex).astype(float),
        "age": np.append(inputs.age, fused.age),
        "site": np.append(inputs.site, inputs.site[fused.parent]).astype(float),
    }
    compared = {name: known[name] for name in settings.phenotypes}
    adjacency = np.zeros((total, total))
    adjacency[inputs.graph.row, inputs.graph.column] = inputs.graph.weight
    for g in range(n, total):
        home, parent = fused.institution[g - n], fused.parent[g - n]
        members = inputs.members(home).tolist()
        sigma = mean_distance(position[members if settings.scope == "local" else inputs.fitted.nonzero()[0]])
        weights = {j: pair_weight(position, compared, sigma, settings.age_gap, g, j) for j in members}
        inside = adjacency[np.ix_(members, members)] * (1 - np.eye(len(members)))
        degree = (inside > 0).sum(axis=1)
        held = settings.k
        if settings.scope == "global_cut":
            held = min(held, round(degree[degree > 0].mean())) if degree.any() else 1
        best = best_partners(weights, held)
        smallest = min((weights[j] for j in best), default=min(inside[inside > 0], default=1.0))
        if parent not in best and held < settings.k:
            best = best[: held - 1]
        kept = {j: weights[j] for j in best}
        if parent not in kept:
            kept[parent] = weights[parent] or smallest
        for j, weight in kept.items():
            adjacency[g, j] = adjacency[j, g] = weight
        adjacency[g, g] = settings.self_weight
    return adjacency


@given(
    seed=st.integers(0, 10**6),
    scope=st.sampled_from(["local", "global_cut"]),
    k=st.integers(1, 8),
    phenotypes=st.sampled_from([("sex", "age"), ("sex", "age", "site"), ("site",)]),
    inductive=st.booleans(),
    self_weight=st.sampled_from([0.0, 0.5, 1.0]),
)
@hypothesis_settings(max_examples=25)
def test_equals_the_plain_graph_built_pair_by_pair(seed, scope, k, phenotypes, inductive, self_weight):
    inputs, generator = cohort(
        seed, d=3, k=k, scope=scope, phenotypes=phenotypes, inductive=inductive, self_weight=self_weight
    )
    # As many components as features keep every distance; that takes one subject more than features.
    assume(min(len(inputs.members(m)) for m in range(3)) >= 4)
    fused = fuse(inputs, generator, NO_CAP, max_generated=3)
    expected = plain(inputs, fused)
    found = dense(fused, len(expected))
    np.testing.assert_array_equal(found > 0, expected > 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


OPTIONS = {
    "seed": st.integers(0, 10**6),
    "nodes": st.sampled_from(["generated", "random"]),
    "edges": st.sampled_from(["similar", "parent", "binary"]),
    "scope": st.sampled_from(["local", "global", "global_cut"]),
    "shuffle": st.booleans(),
    "inductive": st.booleans(),
}


@given(**OPTIONS)
@hypothesis_settings(max_examples=60)
def test_invariants_of_every_kind(seed, nodes, edges, scope, shuffle, inductive):
    inputs, generator = cohort(seed, scope=scope, shuffle=shuffle, inductive=inductive)
    fused = fuse(inputs, generator, FusingSettings(cap=0.8, nodes=nodes, edges=edges), max_generated=3)
    n, g = 30, len(fused.parent)
    adjacency = dense(fused, n + g)

    assert (np.lexsort((fused.column, fused.row)) == np.arange(len(fused.row))).all()
    assert len(set(zip(fused.row.tolist(), fused.column.tolist(), strict=True))) == len(fused.row)
    assert (fused.weight > 0).all()
    real = (fused.row < n) & (fused.column < n)
    for name in ("row", "column", "weight"):
        assert getattr(fused, name)[real].tobytes() == getattr(inputs.graph, name).tobytes()

    np.testing.assert_array_equal(adjacency[n:], adjacency[:, n:].T)
    assert (adjacency[n + np.arange(g), fused.parent] > 0).all()
    np.testing.assert_array_equal(np.diag(adjacency)[n:], 1)
    institutions = np.append(inputs.institution, fused.institution)
    joined = fused.row[~real], fused.column[~real]
    assert (institutions[joined[0]] == institutions[joined[1]]).all()

    assert inputs.fitted[fused.parent].all()
    assert not adjacency[n:, :n][:, ~inputs.fitted].any()
    np.testing.assert_array_equal(fused.institution, inputs.institution[fused.parent])
    assert (np.diff(fused.parent) >= 0).all()
    for m in range(3):
        assert (fused.institution == m).sum() <= 0.8 * len(inputs.members(m))
    assert np.isfinite(fused.features).all()
    shapes = {"features": (g, 6), "institution": (g,), "parent": (g,), "sex": (g,), "age": (g,), "count": (n,)}
    assert {name: getattr(fused, name).shape for name in shapes} == shapes
    assert {fused.row.dtype, fused.column.dtype, fused.institution.dtype, fused.parent.dtype, fused.sex.dtype} == {
        np.dtype(np.int64)
    }
    assert {fused.weight.dtype, fused.features.dtype} == {np.dtype(np.float32)}
    assert {fused.age.dtype, fused.count.dtype} == {np.dtype(np.float64)}


@pytest.mark.parametrize("nodes", ["generated", "random"])
@pytest.mark.parametrize("edges", ["similar", "parent", "binary"])
@pytest.mark.parametrize("options", [{}, {"cap": 0.0}])
def test_without_generated_nodes_it_is_the_population_graph(nodes, edges, options):
    inputs, generator = cohort(3)
    if not options:
        generator.number = [0.4] * 30
    fused = fuse(inputs, generator, FusingSettings(nodes=nodes, edges=edges, **options), max_generated=3)
    for name in ("row", "column", "weight"):
        assert getattr(fused, name).tobytes() == getattr(inputs.graph, name).tobytes()
        assert getattr(fused, name).dtype == getattr(inputs.graph, name).dtype
    assert fused.features.shape == (0, 6)
    assert generator.requests == []
    np.testing.assert_array_equal(fused.count, generator.counts())


def test_a_test_subject_changes_no_edge_or_generated_node():
    inputs, generator = cohort(5, inductive=True)
    subject = int(np.flatnonzero(~inputs.fitted)[0])
    features = inputs.features.copy()
    features[subject] += 7
    changed = replace(inputs, features=features)
    for nodes in ("generated", "random"):
        before, after = (
            fuse(given, generator, FusingSettings(nodes=nodes), max_generated=3) for given in (inputs, changed)
        )
        for name in ("row", "column", "weight", "features", "parent", "sex", "age"):
            np.testing.assert_array_equal(getattr(before, name), getattr(after, name))


def test_another_institution_changes_nothing_under_local_scope():
    inputs, generator = cohort(6)
    foreign = inputs.institution == 2
    changed = replace(
        inputs, features=np.where(foreign[:, None], -3 * inputs.features, inputs.features), sex=inputs.sex.copy()
    )
    changed.sex[foreign] = 1
    for nodes in ("generated", "random"):
        before, after = (
            fuse(given, generator, FusingSettings(nodes=nodes), max_generated=3) for given in (inputs, changed)
        )
        near = np.append(~foreign, before.institution != 2)
        n = len(near)
        np.testing.assert_array_equal(dense(before, n)[near], dense(after, n)[near])
        np.testing.assert_array_equal(before.features[near[30:]], after.features[near[30:]])


@pytest.mark.parametrize("nodes", ["generated", "random"])
def test_the_same_inputs_give_the_same_bytes(nodes):
    first, second = (fuse(*cohort(10), FusingSettings(nodes=nodes), max_generated=3) for _ in range(2))
    for name in ("row", "column", "weight", "features", "institution", "parent", "sex", "age", "count"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()
