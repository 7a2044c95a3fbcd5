"""The fused graph: generated nodes join their own institution by the population graph's rule, and move no real edge."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.graphs.graph import Graph
from brainfed.graphs.population.build import build_graph
from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.inputs import Generated, InpaintingInputs
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams
from reference.population_graph import best_partners, mean_distance, pair_weight

NO_CAP = FusingSettings(cap=None)


@dataclass
class FakeGenerator:
    """Predicts the numbers and draws the nodes that it is told, one row of each a generated node."""

    number: list[float]
    features: np.ndarray
    sex: list[int] = field(default_factory=list)
    age: list[float] = field(default_factory=list)
    asked: list[list[int]] = field(default_factory=list)

    def counts(self):
        return np.array(self.number, dtype=float)

    def draw(self, parents):
        self.asked.append(parents.tolist())
        g = len(parents)
        sex = np.array(self.sex[:g] or [0] * g, dtype=np.int64)
        age = np.array(self.age[:g] or [np.nan] * g, dtype=float)
        return Generated(np.asarray(self.features[:g], dtype=np.float32), sex, age)


def inputs_of(features, institution, *, sex=None, age=None, site=None, fitted=None, seed=1, part="all", **options):
    """Subjects and the population graph that is built from them."""
    n = len(features)
    features = np.asarray(features, dtype=np.float32)
    institution = np.asarray(institution, dtype=np.int64)
    site = np.zeros(n, np.int64) if site is None else np.asarray(site)
    sex = np.zeros(n, np.int64) if sex is None else np.asarray(sex)
    age = np.full(n, np.nan) if age is None else np.asarray(age, dtype=float)
    settings = GraphSettings(**{"k": 2, "embedding_dimensions": 50, "scope": "local", **options})
    streams = Streams(seed)
    known = {"site": site, "sex": sex, "age": age, "settings": settings, "streams": streams}
    graph = build_graph(features, institution, **known, training=fitted)
    return InpaintingInputs(
        subjects=tuple(f"sub-{index:02d}" for index in range(n)),
        institutions=tuple(f"site-{index}" for index in range(int(institution.max()) + 1)),
        institution=institution,
        features=features,
        graph=Graph(graph.row, graph.column, graph.weight, n),
        graph_settings=settings,
        site=site,
        sex=sex,
        age=age,
        fitted=np.ones(n, dtype=bool) if fitted is None else fitted,
        part=part,
        streams=streams,
    )


def cohort(seed, n=30, d=6, institutions=3, inductive=False, **options):
    """Random subjects, some phenotypes missing, and a generator with as many nodes as anyone may ask for."""
    rng = np.random.default_rng(seed)
    inputs = inputs_of(
        rng.normal(size=(n, d)),
        np.arange(n) % institutions,
        sex=rng.integers(-1, 2, n),
        age=np.where(rng.random(n) < 0.1, np.nan, rng.uniform(8, 20, n)),
        site=rng.integers(-1, 3, n),
        fitted=rng.random(n) < 0.7 if inductive else None,
        seed=seed,
        **{"k": 3, **options},
    )
    most = 3 * n
    features, sex = rng.normal(size=(most, d)), rng.integers(-1, 2, most).tolist()
    age = np.where(rng.random(most) < 0.1, np.nan, rng.uniform(8, 20, most)).tolist()
    number = np.where(inputs.fitted, rng.uniform(0, 3.4, n), 0.0).tolist()
    return inputs, FakeGenerator(number, features, sex, age)


def dense(fused, nodes):
    adjacency = np.zeros((nodes, nodes))
    adjacency[fused.row, fused.column] = fused.weight
    return adjacency


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


def line(*positions, number, features, sex=None, born_sex=(), k=2, **options):
    """One institution of subjects on a line; everybody's sex is 0 unless it is said."""
    inputs = inputs_of([[x] for x in positions], [0] * len(positions), sex=sex, k=k, phenotypes=("sex",), **options)
    return inputs, FakeGenerator(number, np.array(features, dtype=float)[:, None], list(born_sex))


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


def test_a_parent_that_is_not_alike_gets_the_smallest_weight_of_the_row():
    # The node is predicted to be of sex 1, as are the subjects at 3 and 7; its parent at 0 is of sex 0.
    inputs, generator = line(0, 1, 3, 7, number=[1, 0, 0, 0], features=[2], sex=[0, 0, 1, 1], born_sex=[1])
    row = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 5)[4]
    sigma = 23 / 6
    near, far = np.exp(-1 / (2 * sigma**2)), np.exp(-25 / (2 * sigma**2))
    np.testing.assert_allclose(row, [far, 0, near, far, 1], rtol=1e-6)


def test_equally_near_subjects_are_kept_in_order_of_id():
    # The node at 3 lies 1 from those at 2 and 4; with k = 1 the first is kept, beside its parent at 0.
    inputs, generator = line(2, 4, 0, number=[0, 0, 1], features=[3], k=1)
    row = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 4)[3]
    assert (row > 0).tolist() == [True, False, True, True]


def test_a_node_alike_to_nobody_is_joined_to_its_parent_with_the_weakest_weight_among_subjects():
    inputs, generator = line(0, 1, 3, number=[0, 1, 0], features=[2], born_sex=[-1])
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert dense(fuse(inputs, generator, NO_CAP, max_generated=10), 4)[3].tolist() == [0, weakest, 0, 1]


def test_a_node_too_far_for_single_precision_is_joined_to_its_parent_with_the_weakest_weight_among_subjects():
    # Sigma is 2; at 32 even the nearest, 29 away, has exp(-29^2 / 8) = 2e-46, less than single precision can hold.
    inputs, generator = line(0, 1, 3, number=[0, 1, 0], features=[32])
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert dense(fused, 4)[3].tolist() == [0, weakest, 0, 1]
    assert (fused.weight > 0).all()


def test_generated_nodes_are_no_neighbours_of_each_other():
    # Both nodes are of sex 1, nobody else is: each keeps its parent alone.
    inputs, generator = line(0, 1, 3, 7, number=[1, 0, 0, 1], features=[2, 3], born_sex=[1, 1])
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 6)
    weakest = inputs.graph.weight[inputs.graph.row != inputs.graph.column].min()
    assert adjacency[4].tolist() == [weakest, 0, 0, 0, 1, 0]
    assert adjacency[5].tolist() == [0, 0, 0, weakest, 0, 1]


def test_however_near_the_others_lie_a_generated_node_keeps_k_subjects():
    inputs, generator = line(0, 2, 5, number=[2, 0, 0], features=[2, 2], k=2)
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 5)
    assert ((adjacency[3:, :3] > 0).sum(axis=1) >= 2).all() and not adjacency[3, 4] and not adjacency[4, 3]


def test_a_generated_node_is_from_its_parents_site():
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], site=[0, 1, 1], phenotypes=("site",))
    row = dense(fuse(inputs, FakeGenerator([0, 1, 0], np.array([[0.0]])), NO_CAP, max_generated=10), 4)[3]
    assert (row > 0).tolist() == [False, True, True, True]


def test_predicted_age_decides_as_a_subjects_age_does():
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], age=[10, 12, 15], phenotypes=("age",))
    generator = FakeGenerator([1, 0, 0], np.array([[0.0]]), age=[13.5])
    fused = fuse(inputs, generator, NO_CAP, max_generated=10)
    # 12 and 15 lie within two years of 13.5; the parent's 10 does not.
    weights = dense(fused, 4)[3]
    sigma = 2.0
    one, three = np.exp(-1 / (2 * sigma**2)), np.exp(-9 / (2 * sigma**2))
    np.testing.assert_allclose(weights, [three, one, three, 1], rtol=1e-6)
    assert fused.age.tolist() == [13.5]


def test_the_embedding_is_the_institutions_own():
    # Institution 0 varies in column 0 alone, so only there may its generated node differ; institution 1 in column 1.
    features = [[0, 0], [1, 0], [3, 0], [0, 0], [0, 10], [0, 30]]
    inputs = inputs_of(features, [0, 0, 0, 1, 1, 1], phenotypes=())
    generator = FakeGenerator([1, 0, 0, 1, 0, 0], np.array([[0.0, 99.0], [99.0, 0.0]]))
    adjacency = dense(fuse(inputs, generator, NO_CAP, max_generated=10), 8)
    # In both the node lies on its parent, at distance 1 (10) of the next; the mean distances are 2 and 20.
    np.testing.assert_allclose(adjacency[6], [1, np.exp(-1 / 8), 0, 0, 0, 0, 1, 0], rtol=1e-6)
    np.testing.assert_allclose(adjacency[7], [0, 0, 0, 1, np.exp(-1 / 8), 0, 0, 1], rtol=1e-6)


def test_under_a_cut_global_graph_sigma_is_that_of_everybody():
    # Positions 0, 1, 3, 7 have the mean distance 23/6; institution 0 alone (0 and 3) has 3.
    inputs = inputs_of([[0], [1], [3], [7]], [0, 1, 0, 1], phenotypes=(), scope="global_cut")
    row = dense(fuse(inputs, FakeGenerator([0, 0, 1, 0], np.array([[1.0]])), NO_CAP, max_generated=10), 5)[4]
    sigma = 23 / 6
    # Subjects 0 and 2 are each other's only neighbours inside: a new node has one, its parent.
    np.testing.assert_allclose(row, [0, 0, np.exp(-4 / (2 * sigma**2)), 0, 1], rtol=1e-6)


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
    everybody = np.append(inputs.institution, fused.institution)
    joined = fused.row[~real], fused.column[~real]
    assert (everybody[joined[0]] == everybody[joined[1]]).all()

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
    assert generator.asked == []
    np.testing.assert_array_equal(fused.count, generator.counts())


def test_numbers_are_rounded_capped_and_asked_for_once_in_order():
    # Institution 0 has four subjects and wants 2 + 1 + 0 + 0; institution 1 has two and wants 3 + 1, cut to 1 of 2.
    inputs = inputs_of(np.arange(6.0)[:, None], [0, 0, 0, 0, 1, 1])
    generator = FakeGenerator([1.6, 0.7, 0.2, 0.0, 9.0, 1.0], np.zeros((9, 1)))
    fused = fuse(inputs, generator, FusingSettings(cap=0.8), max_generated=3)
    assert generator.asked == [[0, 0, 1, 4]]
    assert fused.parent.tolist() == [0, 0, 1, 4]
    assert fused.institution.tolist() == [0, 0, 0, 1]
    assert fused.count.tolist() == [1.6, 0.7, 0.2, 0.0, 9.0, 1.0]


def test_truncating_gives_fewer():
    inputs, generator = line(0, 1, 3, number=[1.9, 0.9, 0], features=[0])
    assert fuse(inputs, generator, FusingSettings(rounding="truncate"), max_generated=10).parent.tolist() == [0]


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


def test_a_test_subject_moves_nothing_but_its_own_row():
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


def test_another_institution_moves_nothing_under_local_scope():
    inputs, generator = cohort(6)
    elsewhere = inputs.institution == 2
    changed = replace(
        inputs, features=np.where(elsewhere[:, None], -3 * inputs.features, inputs.features), sex=inputs.sex.copy()
    )
    changed.sex[elsewhere] = 1
    for nodes in ("generated", "random"):
        before, after = (
            fuse(given, generator, FusingSettings(nodes=nodes), max_generated=3) for given in (inputs, changed)
        )
        near = np.append(~elsewhere, before.institution != 2)
        n = len(near)
        np.testing.assert_array_equal(dense(before, n)[near], dense(after, n)[near])
        np.testing.assert_array_equal(before.features[near[30:]], after.features[near[30:]])


RANDOM = FusingSettings(cap=None, nodes="random")


def test_random_inpainting_has_as_many_nodes_and_asks_for_none():
    inputs, generator = cohort(7)
    generated = fuse(inputs, generator, FusingSettings(), max_generated=3)
    asked = len(generator.asked)
    random = fuse(inputs, generator, FusingSettings(nodes="random"), max_generated=3)
    assert asked == len(generator.asked) == 1
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


def test_random_edges_are_k_with_weights_of_the_institution():
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


def test_random_edges_of_a_small_institution_reach_everybody_once():
    # Nobody agrees with anybody, so there is no real edge to draw a weight from.
    inputs = inputs_of([[0], [1], [3]], [0, 0, 0], sex=[-1, -1, -1], phenotypes=("sex",), k=10)
    adjacency = dense(fuse(inputs, FakeGenerator([0, 1, 0], np.zeros((0, 1))), RANDOM, max_generated=10), 4)
    assert adjacency[3].tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("nodes", ["generated", "random"])
def test_the_same_inputs_give_the_same_bytes(nodes):
    first, second = (fuse(*cohort(10), FusingSettings(nodes=nodes), max_generated=3) for _ in range(2))
    for name in ("row", "column", "weight", "features", "institution", "parent", "sex", "age", "count"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


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


def test_an_institution_without_training_subjects_gets_no_nodes():
    features, institution = np.arange(6.0)[:, None], [0, 0, 0, 1, 1, 1]
    inputs = inputs_of(features, institution, fitted=np.arange(6) < 3)
    fused = fuse(inputs, FakeGenerator([1, 0, 0, 5, 5, 5], np.array([[1.0]])), NO_CAP, max_generated=10)
    assert fused.institution.tolist() == [0]


@pytest.mark.parametrize("what", ["count", "features"])
def test_a_diverged_generator_is_named_with_the_subject(what):
    inputs, generator = line(0, 1, 3, number=[0, 1, 1], features=[1, 2])
    if what == "count":
        generator.number[2] = np.nan
    else:
        generator.features[1] = np.inf
    with pytest.raises(UserError, match=r"sub-02.*diverged; lower `learning_rate`"):
        fuse(inputs, generator, NO_CAP, max_generated=10)
