"""Inpainting fidelity: known answers on hand-made graphs, generators that must score as a baseline, and nulls."""

import json
from dataclasses import asdict, replace
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.graphs import Edges, Graph, GraphSettings, build_graph
from brainfed.inpainting import FusedGraph, InpaintingInputs, fidelity
from brainfed.inpainting._matching import BASELINES
from brainfed.runtime import Streams

STREAMS = Streams(seed=5)


def edges(*pairs):
    """Undirected edges of weight 1 as `Edges`."""
    both = sorted({*pairs, *((column, row) for row, column in pairs)})
    row, column = np.array(both, np.int64).reshape(-1, 2).T
    return Edges(row, column, np.ones(len(row)))


def given_inputs(features, institution, visible, *, sex=None, age=None, fitted=None, age_gap=2.0):
    """Inputs around a hand-made graph; phenotypes are unknown by default."""
    n = len(institution)
    loops = np.arange(n)
    graph = Graph(
        np.concatenate([visible.row, loops]), np.concatenate([visible.column, loops]),
        np.ones(len(visible.row) + n, np.float32), n,
    )  # fmt: skip
    return InpaintingInputs(
        subjects=tuple(f"s{i:03d}" for i in range(n)),
        institutions=tuple(f"m{i}" for i in range(max(institution) + 1)),
        institution=np.array(institution),
        features=np.array(features, dtype=float),
        graph=graph,
        graph_settings=GraphSettings(scope="global_cut", age_gap=age_gap),
        site=np.full(n, -1),
        sex=np.full(n, -1) if sex is None else np.array(sex),
        age=np.full(n, np.nan) if age is None else np.array(age, dtype=float),
        fitted=np.ones(n, bool) if fitted is None else np.array(fitted),
        part="all",
        streams=STREAMS,
    )


def generated_nodes(inputs, features, parent, *, joined=(), sex=None, age=None, count=None):
    """Generated nodes beside the inputs' graph; `joined` are (generated node, subject) besides its parent."""
    n, g = len(inputs.institution), len(parent)
    new = edges(*((n + u, i) for u, i in enumerate(parent)), *((n + u, v) for u, v in joined))
    return FusedGraph(
        row=np.concatenate([inputs.graph.row, new.row]),
        column=np.concatenate([inputs.graph.column, new.column]),
        weight=np.ones(len(inputs.graph.row) + len(new.row), np.float32),
        features=np.array(features, dtype=float).reshape(g, inputs.features.shape[1]),
        institution=inputs.institution[np.array(parent, np.int64)],
        parent=np.array(parent, np.int64),
        sex=np.full(g, -1) if sex is None else np.array(sex),
        age=np.full(g, np.nan) if age is None else np.array(age, dtype=float),
        count=np.zeros(n) if count is None else np.array(count, dtype=float),
    )


def simulated(seed=0, n=36, d=12, institutions=3, **options):
    """A cohort with a cut graph over all subjects, with the removed edges."""
    rng = np.random.default_rng(seed)
    institution = np.arange(n) % institutions
    features = rng.normal(size=(n, d)) + 2
    sex, age = rng.integers(0, 2, n), rng.uniform(8, 20, n)
    settings = GraphSettings(k=4, embedding_dimensions=5, scope="global_cut")
    graph = build_graph(
        features, institution, site=np.full(n, -1), sex=sex, age=age, settings=settings, streams=STREAMS, **options
    )
    fitted = options.get("training", np.ones(n, bool))
    inputs = given_inputs(features, institution.tolist(), edges(), sex=sex, age=age, fitted=fitted)
    return replace(inputs, graph=Graph(graph.row, graph.column, graph.weight, n)), graph.cut


def visible_neighbours(inputs, subject):
    mask = (inputs.graph.row == subject) & (inputs.graph.column != subject)
    return inputs.graph.column[mask]


def stand_ins(inputs, cut, per_parent=2):
    """Parents with missing and visible neighbours, each `per_parent` times."""
    subjects = [i for i in np.unique(cut.row).tolist() if inputs.fitted[i] and len(visible_neighbours(inputs, i))]
    return [i for i in subjects for _ in range(per_parent)]


def angles(*degrees):
    return np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)


def test_a_generator_that_returns_the_missing_neighbours_scores_one():
    inputs, cut = simulated()
    pairs = [(i, j) for i, j in zip(cut.row.tolist(), cut.column.tolist(), strict=True)]
    parent, missing = (np.array(side) for side in zip(*pairs, strict=True))
    joined = [
        (u, v)
        for u, (i, j) in enumerate(pairs)
        for v in cut.row[cut.column == j].tolist()
        if inputs.institution[v] == inputs.institution[i]
    ]
    fused = generated_nodes(
        inputs, inputs.features[missing], parent, joined=joined, sex=inputs.sex[missing], age=inputs.age[missing],
        count=np.bincount(cut.row, minlength=36),
    )  # fmt: skip
    found = fidelity(inputs, fused, cut)
    assert found.generated == len(cut.row)
    assert found.parents == len(set(stand_ins(inputs, cut)))
    assert found.parents > 25
    assert found.count.predicted.pearson == pytest.approx(1)
    assert found.count.predicted.spearman == pytest.approx(1)
    assert found.count.ratio_predicted == found.count.ratio_generated == 1
    for cosine in (found.feature.cosine, found.feature.centred):
        assert cosine.generated.matched.mean == pytest.approx(1)
        assert cosine.generated.matched.error == pytest.approx(0, abs=1e-9)
        assert cosine.generated.to_all.mean < 0.99
        assert all(gain.matched.mean > 0 for gain in cosine.gains.values() if gain.matched.parents)
    assert found.phenotype.sex.generated.mean == 1
    assert found.phenotype.age.generated.mean == 1
    assert found.edges.generated.precision == found.edges.generated.recall == found.edges.generated.f1 == 1
    assert found.edges.random.f1 < 0.9


@pytest.mark.parametrize("name", BASELINES)
def test_a_generator_that_returns_a_baseline_equals_it(name):
    inputs, cut = simulated(seed=3)
    parent = stand_ins(inputs, cut)
    features = {
        "mean_neighbour": lambda i: inputs.features[visible_neighbours(inputs, i)].mean(axis=0),
        "institution_mean": lambda i: inputs.features[inputs.institution == inputs.institution[i]].mean(axis=0),
        "parent": lambda i: inputs.features[i],
    }[name]
    found = fidelity(inputs, generated_nodes(inputs, [features(i) for i in parent], parent), cut).feature
    for cosine in (found.cosine, found.centred):
        if cosine is found.centred and name == "institution_mean":
            continue
        for measure in ("to_all", "matched"):
            own, baseline = (getattr(score, measure) for score in (cosine.generated, cosine.baselines[name]))
            assert own.mean == pytest.approx(baseline.mean, abs=1e-12)
            assert own.error == pytest.approx(baseline.error, abs=1e-12)
            assert getattr(cosine.gains[name], measure).mean == pytest.approx(0, abs=1e-12)


def test_the_centred_institution_mean_has_no_estimates():
    inputs, cut = simulated(seed=3)
    parent = stand_ins(inputs, cut, per_parent=1)
    centred = fidelity(inputs, generated_nodes(inputs, inputs.features[parent], parent), cut).feature.centred
    for scores in (centred.baselines, centred.gains):
        assert scores["institution_mean"].matched.mean is None
        assert scores["institution_mean"].to_all.parents == 0
    # A generator without any direction of its own is worth 0.
    mean = np.stack([inputs.features[inputs.members(int(inputs.institution[i]))].mean(axis=0) for i in parent])
    assert fidelity(inputs, generated_nodes(inputs, mean, parent), cut).feature.centred.generated.to_all.mean == (
        pytest.approx(0, abs=1e-9)
    )


def test_nodes_are_matched_by_the_largest_total_not_one_after_the_other():
    # Subject 0 lost subjects 2 (at 0 degrees) and 3 (at 40); its nodes lie at 10 and -20 degrees.
    # The nearest pair first gives cos 10 + cos 60, the best total is cos 30 + cos 20.
    inputs = given_inputs(angles(90, 70, 0, 40), [0, 0, 1, 1], edges((0, 1)))
    fused = generated_nodes(inputs, angles(10, -20), [0, 0])
    cosine = fidelity(inputs, fused, edges((0, 2), (0, 3))).feature.cosine
    assert cosine.generated.matched.mean == pytest.approx(np.cos(np.radians([30, 20])).mean())
    assert cosine.generated.to_all.mean == pytest.approx(np.cos(np.radians([10, 30, 20, 60])).mean())
    assert cosine.generated.matched.parents == 1
    assert cosine.generated.matched.error is None
    # Visible neighbour 1 at 70, institution's mean at 80, the parent at 90 degrees.
    for name, degrees in {"mean_neighbour": (70, 30), "institution_mean": (80, 40), "parent": (90, 50)}.items():
        expected = np.cos(np.radians(degrees)).mean()
        assert cosine.baselines[name].matched.mean == pytest.approx(expected)
        assert cosine.baselines[name].to_all.mean == pytest.approx(expected)
        assert cosine.gains[name].matched.mean == pytest.approx(np.cos(np.radians([30, 20])).mean() - expected)


def test_copies_of_a_baseline_are_matched_to_as_many_as_there_are_nodes():
    # One node, two missing neighbours at 0 and 40 degrees: each predictor takes the nearer one.
    inputs = given_inputs(angles(90, 70, 0, 40), [0, 0, 1, 1], edges((0, 1)))
    cosine = fidelity(inputs, generated_nodes(inputs, angles(10), [0]), edges((0, 2), (0, 3))).feature.cosine
    assert cosine.generated.matched.mean == pytest.approx(np.cos(np.radians(10)))
    assert cosine.baselines["mean_neighbour"].matched.mean == pytest.approx(np.cos(np.radians(30)))
    assert cosine.baselines["institution_mean"].matched.mean == pytest.approx(np.cos(np.radians(40)))
    assert cosine.baselines["parent"].matched.mean == pytest.approx(np.cos(np.radians(50)))


def test_centred_cosine_is_taken_from_the_mean_of_the_parents_institution():
    # The institution's mean is (10, 10): about it the parent lies at (1, 0), the neighbour at (-1, 0), the missing
    # subject at (0, 2) and the node at (3, 3).
    inputs = given_inputs([[11, 10], [9, 10], [10, 12]], [0, 0, 1], edges((0, 1)))
    feature = fidelity(inputs, generated_nodes(inputs, [[13, 13]], [0]), edges((0, 2))).feature
    assert feature.centred.generated.matched.mean == pytest.approx(np.sqrt(0.5))
    assert feature.centred.baselines["parent"].matched.mean == pytest.approx(0)
    assert feature.cosine.generated.matched.mean == pytest.approx(22 / np.sqrt(2 * (10**2 + 12**2)))


def test_means_and_errors_are_over_parents_not_over_nodes():
    # Subject 0 has three perfect nodes, subject 1 one that is at right angles to its missing neighbour.
    inputs = given_inputs(angles(30, 50, 0, 90), [0, 0, 1, 1], edges((0, 1)))
    fused = generated_nodes(inputs, angles(0, 0, 0, 0), [0, 0, 0, 1])
    score = fidelity(inputs, fused, edges((0, 2), (1, 3))).feature.cosine.generated.to_all
    assert score.mean == pytest.approx(0.5)
    assert score.error == pytest.approx(0.5)  # sd of (1, 0) is sqrt(1/2), over sqrt(2)
    assert score.parents == 2


def plain_cosine(first, second):
    return float(first @ second / np.sqrt((first @ first) * (second @ second)))


@given(seed=st.integers(0, 10**6))
@hypothesis_settings(max_examples=20, deadline=None)
def test_feature_scores_equal_the_plain_ones(seed):
    rng = np.random.default_rng(seed)
    inputs, cut = simulated(seed, n=18)
    few = cut.row % 3 == cut.column % 5 % 3
    cut = Edges(cut.row[few], cut.column[few], cut.weight[few])
    parent = rng.permutation(stand_ins(inputs, cut, per_parent=2))[:9]
    fused = generated_nodes(inputs, rng.normal(size=(len(parent), 12)), parent)
    to_all, matched = [], []
    for i in np.unique(parent):
        nodes = fused.features[parent == i]
        lost = inputs.features[cut.column[cut.row == i]]
        table = [[plain_cosine(u, j) for j in lost] for u in nodes]
        if len(nodes) > len(lost):
            table = [list(column) for column in zip(*table, strict=True)]
        to_all.append(np.mean(table))
        totals = [
            sum(table[a][b] for a, b in enumerate(chosen)) for chosen in permutations(range(len(table[0])), len(table))
        ]
        matched.append(max(totals) / len(table))
    generated = fidelity(inputs, fused, cut).feature.cosine.generated
    assert generated.to_all.parents == len(to_all)
    if len(to_all):
        assert generated.to_all.mean == pytest.approx(np.mean(to_all))
        assert generated.matched.mean == pytest.approx(np.mean(matched))


def test_predicted_counts_against_true_ones():
    # Subjects 0 ... 3 lost 0, 1, 2 and 3 neighbours, 4 ... 6 lost 3, 2 and 1; visible degrees: four 1, three 0.
    inputs = given_inputs(angles(*range(7)), [0, 0, 0, 0, 1, 1, 1], edges((0, 1), (2, 3)))
    cut = edges((1, 4), (2, 4), (2, 5), (3, 4), (3, 5), (3, 6))
    fused = generated_nodes(inputs, angles(1, 2, 3), [1, 2, 3], count=[0, 0.5, 1, 1.5, 1.5, 1, 0.5])
    count = fidelity(inputs, fused, cut).count
    assert count.subjects == 7
    assert count.predicted.pearson == pytest.approx(1)
    assert count.predicted.spearman == pytest.approx(1)
    assert count.predicted_mean == pytest.approx(6 / 7)
    assert count.true_mean == pytest.approx(12 / 7)
    assert count.generated_mean == pytest.approx(3 / 7)
    assert count.ratio_predicted == pytest.approx(0.5)
    assert count.ratio_generated == pytest.approx(0.25)
    assert [(b.predicted, b.true, b.error, b.subjects) for b in count.calibration] == [
        (0, 0, None, 1), (0.5, 1, 0, 2), (1, 2, 0, 2), (1.5, 3, 0, 2),
    ]  # fmt: skip
    # Degrees (1 1 1 1 0 0 0) with (0 1 2 3 3 2 1): means 4/7 and 12/7; covariance 6/7 - 48/49 = -6/49,
    # variances 12/49 and 28/7 - 144/49 = 52/49.
    assert count.visible_degree.pearson == pytest.approx(-6 / np.sqrt(12 * 52))


def test_calibration_bins_are_deciles_of_the_prediction():
    n = 40
    inputs = given_inputs(np.ones((n, 2)), [0] * 20 + [1] * 20, edges())
    predicted = np.random.default_rng(0).permutation(n) / 10
    fused = generated_nodes(inputs, [], [], count=predicted)
    bins = fidelity(inputs, fused, edges((0, 20))).count.calibration
    assert [b.subjects for b in bins] == [4] * 10
    assert [b.predicted for b in bins] == pytest.approx([0.15 + 0.4 * i for i in range(10)])
    assert sum(b.true * b.subjects for b in bins) == pytest.approx(2)


def test_a_constant_prediction_has_one_bin_and_no_correlation():
    inputs = given_inputs(angles(0, 1, 2), [0, 0, 1], edges((0, 1)))
    count = fidelity(inputs, generated_nodes(inputs, [], [], count=[2, 2, 2]), edges((0, 2))).count
    assert count.predicted.pearson is None
    assert count.predicted.spearman is None
    assert [(b.predicted, b.true, b.subjects) for b in count.calibration] == [(2, pytest.approx(2 / 3), 3)]


def test_phenotype_agreement_is_with_the_matched_neighbour():
    # Nodes 0 and 1 of subject 0 are subjects 4 and 5 by their features, node 2 of subject 1 is subject 6.
    inputs = given_inputs(
        angles(45, 45, 45, 45, 0, 90, 180), [0, 0, 0, 0, 1, 1, 1], edges((0, 1)),
        sex=[1, 0, 0, -1, 1, 0, 0], age=[10, 20, 13, np.nan, 11, 12.5, 30],
    )  # fmt: skip
    fused = generated_nodes(inputs, angles(80, 10, 180), [0, 0, 1], sex=[0, 0, 0], age=[14.5, 8.5, 30])
    phenotype = fidelity(inputs, fused, edges((0, 4), (0, 5), (1, 6))).phenotype
    # Sex: node 0 (0) is 5 (0): yes; node 1 (0) is 4 (1): no; node 2 (0) is 6 (0): yes.
    assert phenotype.sex.generated.mean == pytest.approx((0.5 + 1) / 2)
    # Parent 0 (1) against 5 (0) no and 4 (1) yes, parent 1 (0) against 6 (0) yes.
    assert phenotype.sex.parent.mean == pytest.approx((0.5 + 1) / 2)
    # Institution 0 knows the sexes 1 0 0: 2/3 agree with 5, 1/3 with 4, 2/3 with 6.
    assert phenotype.sex.chance.mean == pytest.approx((0.5 + 2 / 3) / 2)
    assert phenotype.sex.pairs == 3
    # Age: 14.5 for 12.5 is just within two years, 8.5 for 11 is not, 30 for 30 is.
    assert phenotype.age.generated.mean == pytest.approx((0.5 + 1) / 2)
    # Parent 0 is 10: not near 12.5, near 11; parent 1 is 20: not near 30.
    assert phenotype.age.parent.mean == pytest.approx((0.5 + 0) / 2)
    # Institution 0 is 10, 20 and 13: one near 12.5 (13), two near 11 (10 and 13), none near 30.
    assert phenotype.age.chance.mean == pytest.approx((0.5 + 0) / 2)
    assert phenotype.age.generated.parents == 2


def test_only_pairs_whose_phenotypes_are_known_count():
    inputs = given_inputs(
        angles(45, 45, 0, 90), [0, 0, 1, 1], edges((0, 1)), sex=[1, 1, 1, -1], age=[10, np.nan, 10, 10]
    )
    fused = generated_nodes(inputs, angles(0, 90, 0), [0, 0, 1], sex=[1, 1, 0], age=[10, np.nan, 10])
    phenotype = fidelity(inputs, fused, edges((0, 2), (0, 3), (1, 2))).phenotype
    assert phenotype.sex.pairs == 2  # node 1 is subject 3, whose sex is unknown
    assert phenotype.sex.generated.mean == pytest.approx(0.5)
    assert phenotype.age.pairs == 1  # node 1 has no age, parent 1 neither
    assert phenotype.age.generated.mean == 1


def edge_case():
    """Subject 0 of six lost subject 6, whom cut edges also join to 1, 2 and 3; its one node is joined to 1, 4 and 5."""
    inputs = given_inputs(angles(*range(0, 70, 10)), [0] * 6 + [1], edges((0, 1), (0, 2), (0, 4), (1, 5)))
    fused = generated_nodes(inputs, angles(60), [0], joined=[(0, 1), (0, 4), (0, 5)])
    return inputs, fused, edges((0, 6), (1, 6), (2, 6), (3, 6))


def test_recovered_edges_exclude_the_parent():
    found = fidelity(*edge_case()).edges
    assert (found.pairs, found.predicted, found.true) == (1, 3, 3)
    assert found.generated.precision == pytest.approx(1 / 3)
    assert found.generated.recall == pytest.approx(1 / 3)
    assert found.generated.f1 == pytest.approx(1 / 3)
    # The parent's neighbours are 1, 2 and 4, of which 1 and 2 are right.
    assert found.visible_neighbours.f1 == pytest.approx(2 / 3)


def test_random_edges_are_the_mean_over_all_choices():
    inputs, fused, cut = edge_case()
    common = [len({1, 2, 3} & set(chosen)) for chosen in combinations([1, 2, 3, 4, 5], 3)]
    random = fidelity(inputs, fused, cut).edges.random
    assert random.precision == pytest.approx(np.mean(common) / 3)
    assert random.f1 == pytest.approx(2 * np.mean(common) / (3 + 3))


def test_edge_scores_are_summed_over_pairs_before_they_are_divided():
    # Parent 0: one of one predicted edge is right, of two true ones; parent 1: none of three, of one true one.
    inputs = given_inputs(angles(*range(0, 80, 10)), [0] * 6 + [1, 1], edges((0, 1)))
    fused = generated_nodes(inputs, angles(60, 70), [0, 1], joined=[(0, 2), (1, 3), (1, 4), (1, 5)])
    found = fidelity(inputs, fused, edges((0, 6), (2, 6), (3, 6), (1, 7), (2, 7))).edges
    assert found.pairs == 2
    assert found.generated.precision == pytest.approx(1 / 4)
    assert found.generated.recall == pytest.approx(1 / 3)
    assert found.generated.f1 == pytest.approx(2 / 7)


def test_a_node_without_a_counterpart_is_in_no_pair():
    inputs, _, cut = edge_case()
    fused = generated_nodes(inputs, angles(60, 30), [0, 0], joined=[(1, 1)])
    found = fidelity(inputs, fused, cut).edges
    assert (found.pairs, found.predicted) == (1, 0)
    assert found.generated.precision is None
    assert found.generated.recall == found.generated.f1 == 0


def test_parents_without_missing_or_visible_neighbours_are_counted_not_compared():
    inputs = given_inputs(angles(0, 10, 20, 30, 40), [0, 0, 0, 0, 1], edges((0, 1), (1, 2)))
    fused = generated_nodes(inputs, angles(1, 1, 1, 1), [0, 1, 3, 3])
    found = fidelity(inputs, fused, edges((0, 4), (3, 4)))
    assert (found.generated, found.parents) == (4, 1)
    assert (found.parents_without_missing, found.parents_without_visible) == (1, 1)
    assert found.feature.cosine.generated.to_all.parents == 1


@pytest.mark.parametrize("missing", [(), ((0, 2),)])
@pytest.mark.parametrize("parent", [[], [0]])
def test_undefined_values_are_null(missing, parent):
    inputs = given_inputs(np.zeros((3, 2)), [0, 0, 1], edges((0, 1)))
    found = asdict(fidelity(inputs, generated_nodes(inputs, [[0, 0]] * len(parent), parent), edges(*missing)))
    text = json.dumps(found, allow_nan=False)
    assert json.loads(text)["count"]["predicted"] == {"pearson": None, "spearman": None}
    assert found["count"]["ratio_predicted"] == (0 if missing else None)
    compared = bool(missing) and bool(parent)
    assert found["parents"] == compared
    assert found["feature"]["cosine"]["generated"]["matched"]["mean"] == (0 if compared else None)
    assert found["phenotype"]["sex"]["generated"] == {"mean": None, "error": None, "parents": 0}
    assert found["edges"]["generated"]["f1"] is None


def test_the_json_has_the_names_that_the_documentation_states():
    inputs, cut = simulated()
    parent = stand_ins(inputs, cut)
    found = json.loads(
        json.dumps(asdict(fidelity(inputs, generated_nodes(inputs, inputs.features[parent], parent), cut)))
    )
    estimate = {"mean", "error", "parents"}
    assert list(found) == [
        "generated", "parents", "parents_without_missing", "parents_without_visible",
        "count", "feature", "phenotype", "edges",
    ]  # fmt: skip
    assert set(found["count"]["calibration"][0]) == {"predicted", "true", "error", "subjects"}
    for kind in ("cosine", "centred"):
        cosine = found["feature"][kind]
        assert set(cosine["baselines"]) == set(cosine["gains"]) == set(BASELINES)
        for score in (cosine["generated"], *cosine["baselines"].values(), *cosine["gains"].values()):
            assert set(score) == {"to_all", "matched"}
            assert set(score["matched"]) == estimate
    assert set(found["phenotype"]["age"]) == {"generated", "parent", "chance", "pairs"}
    assert set(found["edges"]) == {"generated", "random", "visible_neighbours", "pairs", "predicted", "true"}


def test_subjects_that_are_not_fitted_are_in_no_score():
    training = np.arange(36) % 4 != 0
    inputs, cut = simulated(seed=2, training=training)
    parent = stand_ins(inputs, cut)
    joined = [(u, v) for u, i in enumerate(parent) for v in np.flatnonzero(inputs.institution == i % 3) if v != i]
    fused = generated_nodes(
        inputs, inputs.features[parent], parent, joined=joined, sex=inputs.sex[parent], age=inputs.age[parent],
        count=np.arange(36),
    )  # fmt: skip
    before = fidelity(inputs, fused, cut)
    assert before.count.subjects == training.sum()
    assert before.edges.predicted == before.edges.pairs * (9 - 1)  # of twelve members nine are fitted
    assert before.edges.random.recall == pytest.approx(1)  # that is every candidate
    moved = np.where(training[:, None], inputs.features, 99.0)
    unknown = np.where(training, inputs.sex, -1)
    among = training[cut.row]
    after = fidelity(
        replace(inputs, features=moved, sex=unknown, age=np.where(training, inputs.age, np.nan)),
        replace(fused, count=np.where(training, fused.count, 7.0)),
        Edges(cut.row[among], cut.column[among], cut.weight[among]),
    )
    assert after == before


@given(seed=st.integers(0, 10**6))
@hypothesis_settings(max_examples=15, deadline=None)
def test_the_order_of_the_generated_nodes_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    inputs, cut = simulated(seed)
    n, parent = len(inputs.institution), np.array(stand_ins(inputs, cut))
    features = rng.normal(size=(len(parent), 12))
    sex, age = rng.integers(0, 2, len(parent)), rng.uniform(8, 20, len(parent))
    joined = np.array([(u, v) for u, i in enumerate(parent) for v in range(i % 3, n, 3) if rng.random() < 0.3])
    order = rng.permutation(len(parent))
    place = np.argsort(order)
    first = generated_nodes(inputs, features, parent, joined=joined.tolist(), sex=sex, age=age)
    second = generated_nodes(
        inputs,
        features[order],
        parent[order],
        joined=[(place[u], v) for u, v in joined],
        sex=sex[order],
        age=age[order],
    )
    before, after = (fidelity(inputs, fused, cut) for fused in (first, second))
    assert before.edges.generated == after.edges.generated
    assert before.edges.visible_neighbours == after.edges.visible_neighbours
    assert before.edges.random.f1 == pytest.approx(after.edges.random.f1)
    assert before.phenotype.sex.generated.mean == pytest.approx(after.phenotype.sex.generated.mean)
    assert before.phenotype.age.generated.mean == pytest.approx(after.phenotype.age.generated.mean)
    for measure in ("to_all", "matched"):
        one, two = (getattr(found.feature.centred.generated, measure) for found in (before, after))
        assert one.mean == pytest.approx(two.mean, abs=1e-12)
