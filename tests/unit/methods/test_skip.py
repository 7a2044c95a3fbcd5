"""A skip connection past the graph: the numbers of the plain loop, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from brainfed.models.stacked_network import Architecture, StackedNetwork
from sklearn.metrics import roc_auc_score

from brainfed.engines.stacked import training as stacked
from brainfed.engines.stacked.stacks import members, stack_inputs
from brainfed.engines.stacked.training import train_stacked
from brainfed.federation.pace import Pace
from brainfed.graphs.graph import Graph
from brainfed.methods.gcn import train_fedgcn as fedgcn
from brainfed.methods.gcn.fedgcn import METHOD, FedGCNSettings
from brainfed.runtime.jobs.checkpoints import Checkpoint, checkpoint_path
from brainfed.runtime.jobs.run import Run
from method_inputs import diagnosis_of, method_inputs, scrambled
from reference.loop_federation import train_by_loops

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 3, "local_epochs": 4, "learning_rate": 0.01}
SETTINGS = FedGCNSettings(**SCHEDULE, hidden=(8, 4), skip="linear")
both_protocols = pytest.mark.parametrize("protocol", ["transductive", "inductive"])


def features_by_fold(inputs):
    """The same inputs with features of their own in every fold."""
    own = tuple(np.float32(1 + fold / 4) * inputs.features[0] ** 2 for fold in range(inputs.folds))
    return replace(inputs, features=own)


@both_protocols
@pytest.mark.parametrize("by_fold", [False, True], ids=["shared-features", "features-by-fold"])
def test_training_with_a_skip_equals_the_loop(protocol, by_fold):
    inputs = method_inputs(subjects=61, dimensions=12, institutions=3, folds=4, effect=0.5, seed=3, protocol=protocol)
    inputs = features_by_fold(inputs) if by_fold else inputs
    expected = train_by_loops(inputs, hidden=(8, 4), graph=True, standardise=True, noise=0.01, skip=True, **SCHEDULE)
    assert_same(fedgcn.train(inputs, SETTINGS, DOUBLE).scores[..., 1], expected)


@pytest.mark.parametrize(
    "options",
    [{"standardise": "none"}, {"weighting": "subjects"}, {"batch": 5}, {"weight_decay": 0.1}, {"proximal": 0.5}],
    ids=str,
)
def test_every_setting_reaches_the_skip(options):
    inputs = method_inputs(subjects=47, dimensions=7, institutions=3, folds=3, effect=0.5, seed=5)
    loop = dict(options)
    standardise = loop.pop("standardise", "institution") == "institution"
    expected = train_by_loops(
        inputs, hidden=(8, 4), graph=True, standardise=standardise, noise=0.01, skip=True, **SCHEDULE, **loop
    )
    assert_same(fedgcn.train(inputs, replace(SETTINGS, **options), DOUBLE).scores[..., 1], expected)


def test_clients_that_sit_out_leave_the_skip_as_it_is():
    """One institution of three a round: its upload is the average, as if it had trained alone."""
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3, seed=2)
    settings = replace(SETTINGS, fraction=0.3, rounds=1, noise=0.0)
    found = fedgcn.train(inputs, settings, DOUBLE)
    trained = np.flatnonzero(np.isfinite(found.training_loss[0, :, 0]))
    assert len(trained) == 1
    alone = train_stacked(
        inputs,
        settings,
        DOUBLE,
        hidden=(8, 4),
        graph=True,
        standardise=True,
        shared_tensors={},
        topology="local",
        skip=True,
    )
    own = inputs.institution == trained[0]
    np.testing.assert_allclose(
        found.scores[..., 1][:, own], alone.scores[..., 1][:, own], atol=1e-12, rtol=0, equal_nan=True
    )


@both_protocols
def test_a_skip_on_silent_features_is_the_plain_gcn(protocol):
    """Features of 0 give the skip neither logits nor a gradient."""
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3, seed=2, protocol=protocol)
    silent = replace(inputs, features=(np.zeros_like(inputs.features[0]),))
    plain = fedgcn.train(silent, replace(SETTINGS, skip="none"), DOUBLE)
    assert fedgcn.train(silent, SETTINGS, DOUBLE).scores[..., 1].tobytes() == plain.scores[..., 1].tobytes()


@both_protocols
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(protocol):
    inputs = method_inputs(60, protocol=protocol)
    before = fedgcn.train(inputs, SETTINGS, Run()).round_scores[..., 1]
    for fold in range(inputs.folds):
        after = fedgcn.train(scrambled(inputs, fold), SETTINGS, Run()).round_scores[..., 1]
        assert after[:, fold].tobytes() == before[:, fold].tobytes()
        assert after.tobytes() != before.tobytes()


def test_a_graph_that_misleads_is_bypassed():
    """Every neighbour at random and no self-loop: a node's own signal is nowhere in the graph's sums."""
    inputs = method_inputs(150, 20, effect=1.5, seed=1)
    random = np.random.default_rng(0)
    row = np.repeat(np.arange(150), 10)
    column = np.concatenate([random.choice(np.setdiff1d(inputs.members(node % 3), [node]), 10) for node in range(150)])
    misled = replace(inputs, graphs=(Graph(row, column, np.ones(1500, np.float32), 150),))
    truth, position = diagnosis_of(inputs), np.arange(150)
    schedule = {"rounds": 5, "local_epochs": 10, "learning_rate": 0.01, "noise": 0.0}
    auc = {
        skip: roc_auc_score(truth, outcome.scores[inputs.fold, position, 1])
        for skip in ("none", "linear")
        for outcome in [fedgcn.train(misled, FedGCNSettings(**schedule, skip=skip), Run())]
    }
    assert auc["none"] < 0.65
    assert auc["linear"] > 0.85


def test_the_skip_is_counted_and_crosses_under_its_name():
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    plain, skip = (fedgcn.train(inputs, replace(SETTINGS, skip=kind), Run()) for kind in ("none", "linear"))
    assert skip.counts["parameters"] - plain.counts["parameters"] == 11 * 2
    steps = 3 * 4
    assert skip.counts["first_layer_operations"] == steps * 4 * 40 * 11 * (8 + 2) * 4
    assert plain.counts["first_layer_operations"] == steps * 4 * 40 * 11 * 8 * 4
    rows = {(row["name"], row["direction"]): row for row in skip.crossings if row["name"] == "weight-skip"}
    assert rows["weight-skip", "upload"]["shape"] == "11x2"
    assert rows["weight-skip", "upload"]["bytes"] == 3 * 3 * 11 * 2 * 4
    assert [row for row in skip.crossings if row["name"] != "weight-skip"] == list(plain.crossings)


@both_protocols
@pytest.mark.parametrize("optimiser_state", ["reset", "keep"])
def test_an_interrupted_training_resumes_to_the_same_bytes(protocol, optimiser_state, tmp_path, monkeypatch):
    monkeypatch.setattr(Pace, "due", lambda _: True)
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=3, protocol=protocol)
    settings = replace(SETTINGS, optimiser_state=optimiser_state)
    expected = fedgcn.train(inputs, settings, Run())
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "predictions.parquet", "0a"), "0a")
    seen = []

    def stop_in_round_three(done, *_):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fedgcn.train(inputs, settings, Run(checkpoint=checkpoint, progress=stop_in_round_three))
    resumed = fedgcn.train(inputs, settings, Run(checkpoint=checkpoint, progress=lambda done, *_: seen.append(done)))
    assert seen == [3]
    assert resumed.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert resumed.crossings == expected.crossings


@both_protocols
@pytest.mark.parametrize("by_fold", [False, True], ids=["shared-features", "features-by-fold"])
def test_folds_trained_in_chunks_give_the_same_scores(protocol, by_fold, monkeypatch):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=3, protocol=protocol)
    inputs = features_by_fold(inputs) if by_fold else inputs
    expected = fedgcn.train(inputs, SETTINGS, DOUBLE)
    monkeypatch.setattr(stacked, "STACK_BYTES", 1)
    found = fedgcn.train(inputs, SETTINGS, DOUBLE)
    np.testing.assert_allclose(found.round_scores[..., 1], expected.round_scores[..., 1], atol=1e-12, rtol=0)
    assert found.crossings == expected.crossings


def test_an_unseen_site_is_scored_by_the_other_sites_models_with_their_skips():
    """A site's model scores site 0 as if site 0 were part of it, without labels: no edge joins the two."""
    inputs = method_inputs(subjects=36, dimensions=9, institutions=3, split="leave-one-site-out")
    options = {"hidden": (8, 4), "graph": True, "standardise": False, "topology": "local", "skip": True}
    options |= {"shared_tensors": METHOD.shared_tensors}
    found = train_stacked(inputs, SETTINGS, DOUBLE, **options)
    unseen = inputs.institution == 0
    by_teacher = []
    for teacher in (1, 2):
        other = inputs.institution == 3 - teacher
        joined = replace(inputs, institutions=("teacher-and-unseen", "other"), institution=other.astype(np.int64))
        by_teacher.append(train_stacked(joined, SETTINGS, DOUBLE, **options).scores[..., 1][0][unseen])
    np.testing.assert_allclose(found.scores[..., 1][0][unseen], np.mean(by_teacher, axis=0), atol=1e-8, rtol=0)
    assert {row["name"]: row["tensors"] for row in found.crossings}["weight-skip"] == 2


@both_protocols
def test_a_training_step_stays_on_its_device(protocol):
    inputs = method_inputs(40, 12, institutions=2, folds=2, protocol=protocol)
    trained = members(inputs, (0, 1), pooled=False, standardise=True)
    meta, kind = torch.device("meta"), torch.float32
    stack = stack_inputs(inputs, trained, (0, 1), graph=True, device=meta, dtype=kind, skip=True)
    architecture = Architecture(12, (8, 4), graph=True, skip=True)
    network = StackedNetwork(
        architecture, stack.designs, stack.propagation, (0, 1), inputs.streams, meta, kind, stack.own
    )
    losses = network.training_step(stack.labels, torch.ones(2, dtype=torch.bool))
    assert losses.device == network.skip.weight.grad.device == meta
    assert network.probabilities().shape == (*stack.labels.shape, 2)


def assert_same(found, expected):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)
