"""A skip connection past the graph: the numbers of the plain loop, and nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from brainfed.engines import train_networks
from brainfed.engines.stacked import StackedTraining
from brainfed.engines.stacked import _training as training
from brainfed.federation import Ledger
from brainfed.graphs import Graph, normalised_adjacency
from brainfed.methods.gcn.declaration import FEDGCN, FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.models import GCN
from brainfed.runtime.jobs import Run
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import diagnosis_of, method_inputs, scrambled

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
    assert_same(train_fedgcn(inputs, SETTINGS, DOUBLE).scores[..., 1], expected)


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
    assert_same(train_fedgcn(inputs, replace(SETTINGS, **options), DOUBLE).scores[..., 1], expected)


def test_clients_that_sit_out_leave_the_skip_as_it_is():
    """One institution of three a round: its upload is the average, as if it had trained alone."""
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3, seed=2)
    settings = replace(SETTINGS, fraction=0.3, rounds=1, noise=0.0)
    found = train_fedgcn(inputs, settings, DOUBLE)
    trained = np.flatnonzero(np.isfinite(found.training_loss[0, :, 0]))
    assert len(trained) == 1
    module = GCN(7, (8, 4), 2, skip=True)
    alone = train_networks(
        StackedTraining(inputs, settings, DOUBLE, "local", {}, module=module, propagate=normalised_adjacency)
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
    plain = train_fedgcn(silent, replace(SETTINGS, skip="none"), DOUBLE)
    assert train_fedgcn(silent, SETTINGS, DOUBLE).scores[..., 1].tobytes() == plain.scores[..., 1].tobytes()


@both_protocols
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(protocol):
    inputs = method_inputs(60, protocol=protocol)
    before = train_fedgcn(inputs, SETTINGS, Run()).round_scores[..., 1]
    for fold in range(inputs.folds):
        after = train_fedgcn(scrambled(inputs, fold), SETTINGS, Run()).round_scores[..., 1]
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
        for outcome in [train_fedgcn(misled, FedGCNSettings(**schedule, skip=skip), Run())]
    }
    assert auc["none"] < 0.65
    assert auc["linear"] > 0.85


def test_the_skip_is_counted_and_crosses_under_its_name():
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    plain, skip = (train_fedgcn(inputs, replace(SETTINGS, skip=kind), Run()) for kind in ("none", "linear"))
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
def test_an_interrupted_training_resumes_to_the_same_bytes(protocol, optimiser_state, resumed):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=3, protocol=protocol)
    settings = replace(SETTINGS, optimiser_state=optimiser_state)
    expected = train_fedgcn(inputs, settings, Run())
    again, seen = resumed(lambda run: train_fedgcn(inputs, settings, run), 3)
    assert seen == [3]
    assert again.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert again.crossings == expected.crossings


@both_protocols
@pytest.mark.parametrize("by_fold", [False, True], ids=["shared-features", "features-by-fold"])
def test_folds_trained_in_chunks_give_the_same_scores(protocol, by_fold, monkeypatch):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=3, protocol=protocol)
    inputs = features_by_fold(inputs) if by_fold else inputs
    expected = train_fedgcn(inputs, SETTINGS, DOUBLE)
    monkeypatch.setattr(training, "STACK_BYTES", 1)
    found = train_fedgcn(inputs, SETTINGS, DOUBLE)
    np.testing.assert_allclose(found.round_scores[..., 1], expected.round_scores[..., 1], atol=1e-12, rtol=0)
    assert found.crossings == expected.crossings


def test_an_unseen_site_is_scored_by_the_other_sites_models_with_their_skips():
    """A site's model scores site 0 as if site 0 were part of it, without labels: no edge joins the two."""
    inputs = method_inputs(subjects=36, dimensions=9, institutions=3, split="leave-one-site-out")

    def trained(cohort):
        module = GCN(9, (8, 4), 2, skip=True)
        task = StackedTraining(
            cohort,
            SETTINGS,
            DOUBLE,
            "local",
            FEDGCN.crossing.tensors,
            module=module,
            propagate=normalised_adjacency,
            standardise=False,
        )
        return train_networks(task)

    found = trained(inputs)
    unseen = inputs.institution == 0
    by_teacher = []
    for teacher in (1, 2):
        other = inputs.institution == 3 - teacher
        joined = replace(inputs, institutions=("teacher-and-unseen", "other"), institution=other.astype(np.int64))
        by_teacher.append(trained(joined).scores[..., 1][0][unseen])
    np.testing.assert_allclose(found.scores[..., 1][0][unseen], np.mean(by_teacher, axis=0), atol=1e-8, rtol=0)
    assert {row["name"]: row["tensors"] for row in found.crossings}["weight-skip"] == 2


@both_protocols
def test_a_training_step_stays_on_its_device(protocol):
    inputs = method_inputs(40, 12, institutions=2, folds=2, protocol=protocol)
    module = GCN(12, (8, 4), 2, skip=True)
    run = Run(device="meta")
    task = StackedTraining(inputs, SETTINGS, run, "federated", {}, module=module, propagate=normalised_adjacency)
    network = task.network((0, 1), Ledger({}))
    losses = network.training_step(network.stack.labels, torch.ones(2, dtype=torch.bool))
    assert losses.device == network.first["weight_skip"].weight.grad.device == torch.device("meta")
    assert network.probabilities().shape == (*network.stack.labels.shape, 2)


def assert_same(found, expected):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)
