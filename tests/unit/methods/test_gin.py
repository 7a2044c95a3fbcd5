"""Methods of whole graphs: what they learn, share, may not see, and how they go on after a stop."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods import METHODS, SHIPPED_VARIANTS
from brainfed.methods.gcfl.declaration import CONVOLUTIONS
from brainfed.runtime import UserError, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import GraphSamples, check
from support.samples.graph_cohort import graph_inputs, random_graphs, with_labels
from support.samples.method_inputs import diagnosis_of

SOLO = ("selftrain", "central-gin")
FEDERATED = ("fedavg-gin", "fedprox-gin", "gcfl", "gcfl-plus")
every_variant = pytest.mark.parametrize("name", [*SOLO, *FEDERATED])
both_splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


def outcome_of(name, inputs, run=None, steps=6, **settings):
    definition = dict(SHIPPED_VARIANTS[name])
    method = METHODS[definition.pop("method")]
    length = "epochs" if name in SOLO else "rounds"
    made = method.settings(**{length: steps, "learning_rate": 0.01, **definition, **settings})
    return resolve(method.entry)(inputs, made, run or Run())


ONE_ENGINE = pytest.mark.full("One method alone and one federated are scored so at every change.")


@pytest.mark.parametrize(
    ("name", "split"),
    [
        *((name, "random") for name in (*SOLO, *FEDERATED)),
        *(
            pytest.param(name, "leave-one-site-out", marks=[] if name in {"selftrain", "gcfl"} else ONE_ENGINE)
            for name in (*SOLO, *FEDERATED)
        ),
    ],
)
def test_it_scores_every_tested_subject_and_learns(name, split):
    inputs = graph_inputs(45, effect=1.5, folds=2, split=split)
    outcome = outcome_of(name, inputs, steps=15)
    check(inputs, outcome)
    truth = diagnosis_of(inputs)
    right = [
        (outcome.scores[fold, inputs.tested(fold)].argmax(axis=1) == truth[inputs.tested(fold)]).mean()
        for fold in range(inputs.folds)
    ]
    assert np.mean(right) > 0.8


@every_variant
@both_splits
def test_graphs_of_tested_subjects_change_no_other_score(name, split):
    """`test_leakage_trained` turns their labels."""
    inputs = graph_inputs(36, folds=2, split=split)
    first, *others = np.flatnonzero(inputs.tested(1))
    changed = replace(inputs, graphs=(exchanged(inputs.graphs[0], others),))
    before, after = (outcome_of(name, each, steps=2).scores for each in (inputs, changed))
    assert after[1, first].tobytes() == before[1, first].tobytes()
    assert (after[1, others] != before[1, others]).any()
    assert (after[0] != before[0])[inputs.tested(0)].any()


def exchanged(graphs: GraphSamples, subjects):
    """The same graphs, those of some subjects replaced by others of the same size."""
    other = random_graphs(np.ones(len(graphs), dtype=int), effect=3.0)
    nodes = graphs.nodes.copy()
    for subject in subjects:
        rows = slice(graphs.node_start[subject], graphs.node_start[subject + 1])
        nodes[rows] = other.nodes[rows]
    return replace(graphs, nodes=nodes)


@pytest.mark.parametrize("name", FEDERATED)
def test_the_convolutions_and_the_numbers_of_subjects_alone_leave_an_institution(name):
    crossed = {row["name"] for row in outcome_of(name, graph_inputs()).crossings}
    norms = {"gradient-norm"} if name == "gcfl-plus" else set()
    assert crossed == {*CONVOLUTIONS, "training-subjects"} | norms


def test_alone_nothing_crosses_and_pooled_all_graphs_do():
    inputs = graph_inputs()
    assert outcome_of("selftrain", inputs).crossings == ()
    rows = {row["name"]: row for row in outcome_of("central-gin", inputs).crossings}
    assert set(rows) == {"nodes", "edges", "labels"}
    assert rows["nodes"]["bytes"] == inputs.graphs[0].nodes.nbytes
    assert {row["to"] for row in rows.values()} == {"centre"}


def test_a_pooled_row_shows_that_institutions_send_unlike_numbers_of_nodes_and_all_their_bytes():
    inputs = graph_inputs()
    graphs = inputs.graphs[0]
    nodes = np.bincount(inputs.institution, np.diff(graphs.node_start)).astype(int)
    edges = np.bincount(inputs.institution, np.diff(graphs.edge_start)).astype(int)
    assert nodes.min() < nodes.max()
    rows = {row["name"]: row for row in outcome_of("central-gin", inputs).crossings}
    assert rows["nodes"]["shape"] == f"{nodes.min()}..{nodes.max()}x{graphs.nodes.shape[1]}"
    assert rows["edges"]["shape"] == f"{edges.min()}..{edges.max()}x2"
    assert rows["nodes"]["bytes"] == graphs.nodes.nbytes
    assert rows["edges"]["bytes"] == graphs.source.nbytes + graphs.target.nbytes
    assert rows["labels"]["bytes"] == len(inputs.subjects)
    assert {row["tensors"] for row in rows.values()} == {len(nodes)}


@pytest.mark.parametrize("name", ["selftrain", "fedavg-gin"])
def test_sign_and_weight_of_an_edge_are_not_read(name):
    inputs = graph_inputs()
    (graphs,) = inputs.graphs
    turned = replace(inputs, graphs=(replace(graphs, weight=-0.5 * graphs.weight),))
    assert (turned.graphs[0].weight != graphs.weight).all()
    np.testing.assert_array_equal(outcome_of(name, inputs).scores, outcome_of(name, turned).scores)


@pytest.mark.parametrize("name", ["selftrain", "fedavg-gin"])
def test_whole_networks_score_a_site_that_trains_nothing(name):
    inputs = graph_inputs(split="leave-one-site-out")
    crossed = {row["name"] for row in outcome_of(name, inputs).crossings}
    assert {"pre.weight", "post.weight", "readout.weight"} <= crossed


@pytest.mark.parametrize("name", ["selftrain", "gcfl-plus"])
def test_a_stopped_training_resumes_to_the_same_bytes(name, resumed):
    inputs, settings = graph_inputs(45), {} if name == "selftrain" else {"first_cut": 1, "eps1": 10, "eps2": 0}
    whole = outcome_of(name, inputs, **settings)
    again, _ = resumed(lambda run: outcome_of(name, inputs, run, **settings), 4)
    assert again.round_scores.tobytes() == whole.round_scores.tobytes()
    assert again.crossings == whole.crossings
    if name == "gcfl-plus":
        np.testing.assert_array_equal(again.clusters, whole.clusters)
        assert whole.clusters[-1].max() > 0


def test_no_cluster_is_cut_before_the_round_that_the_setting_names():
    clusters = outcome_of("gcfl", graph_inputs(45), steps=3, first_cut=2, eps1=10, eps2=0).clusters
    assert not clusters[:2].any()
    assert clusters[2].any(axis=-1).all()


def test_a_class_that_an_institution_lacks_stops_nothing():
    inputs = graph_inputs()
    truth = np.where(inputs.institution == 0, 0, diagnosis_of(inputs))
    for name in ("selftrain", "gcfl"):
        outcome = outcome_of(name, with_labels(inputs, truth))
        check(with_labels(inputs, truth), outcome)
        tested = np.concatenate([outcome.scores[fold, inputs.tested(fold)] for fold in range(inputs.folds)])
        np.testing.assert_allclose(tested.sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("name", ["selftrain", "gcfl-plus"])
def test_an_institution_has_the_network_of_its_own_data_set(name):
    """Wider features and more classes elsewhere in the cohort change no bit of its scores."""
    held = graph_inputs()
    (graphs,) = held.graphs
    width = graphs.nodes.shape[1]
    padded = replace(graphs, nodes=np.pad(graphs.nodes, ((0, 0), (0, 3))))
    shapes = ((width, 2),) * len(held.institutions)
    grouped = replace(held, graphs=(padded,), shapes=shapes, classes=4)
    scores = outcome_of(name, grouped).scores
    np.testing.assert_array_equal(scores[..., :2], outcome_of(name, held).scores)
    assert (scores[..., 2:][np.isfinite(scores[..., 2:])] == 0).all()
    assert not np.array_equal(scores, outcome_of(name, replace(grouped, shapes=())).scores, equal_nan=True)


def test_institutions_may_count_the_same_inside_a_cluster():
    held = graph_inputs()
    few = np.flatnonzero(held.institution == 0)[::2]
    labels = held.labels.copy()
    labels[:, few] = -1
    uneven = replace(held, labels=labels)
    equal, by_size = (outcome_of("gcfl", uneven, weighting=way).scores for way in ("equal", "subjects"))
    assert not np.array_equal(equal, by_size, equal_nan=True)


@pytest.mark.parametrize("name", ["selftrain", "central-gin", "fedavg-gin", "gcfl"])
def test_a_training_that_diverges_gets_a_sentence(name):
    held = graph_inputs()
    (graphs,) = held.graphs
    huge = replace(held, graphs=(replace(graphs, nodes=graphs.nodes * np.float32(1e30)),))
    with pytest.raises(UserError, match=r"expected (a finite loss|finite weights), found NaN or"):
        outcome_of(name, huge, learning_rate=1e30)
