"""Sampled training: all neighbours give full training, some give an unbiased estimate of its propagation."""

import numpy as np
import pytest
import torch
from brainfed.graphs.sampling import Incoming, draw_hop

from brainfed.methods.fedni.fedni import FedNISettings
from brainfed.methods.gcn import train_fedgcn as fedgcn
from brainfed.methods.gcn.fedgcn import FedGCNSettings
from brainfed.runtime.jobs.checkpoints import Checkpoint, checkpoint_path
from brainfed.runtime.jobs.run import Run
from method_inputs import method_inputs, scrambled

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 3, "local_epochs": 2, "learning_rate": 0.01, "hidden": (8, 4)}

# Node 0 hears itself and nodes 1, 2, 3, 4; node 1 itself and node 0; node 2 only node 3; nodes 3 and 4 nobody.
ROW = np.array([0, 0, 0, 0, 0, 1, 1, 2])
COLUMN = np.array([0, 1, 2, 3, 4, 0, 1, 3])
VALUE = np.array([0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8])
INCOMING = Incoming.of_edges(ROW, COLUMN, VALUE, 5)


def dense(hop, nodes=5):
    matrix = np.zeros((hop.matrix.shape[0], nodes))
    matrix[:, hop.senders] = hop.matrix.toarray()
    return matrix


def adjacency():
    matrix = np.zeros((5, 5))
    matrix[ROW, COLUMN] = VALUE
    return matrix


def test_all_neighbours_are_the_rows_of_the_graph():
    receivers = np.array([4, 0, 2])
    hop = draw_hop(INCOMING, receivers, 0, None)
    np.testing.assert_array_equal(dense(hop), adjacency()[receivers])
    enough = draw_hop(INCOMING, receivers, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(dense(enough), adjacency()[receivers])


def test_a_node_keeps_itself_and_hears_as_many_others_as_asked():
    rng = np.random.default_rng(0)
    draws = np.array([dense(draw_hop(INCOMING, np.arange(5), 2, rng)) for _ in range(2000)])
    assert (np.count_nonzero(draws, axis=2) == [3, 2, 1, 0, 0]).all()
    assert (draws[:, 0, 0] == 0.5).all()
    # Two of four others: twice the weight in half of the draws.
    np.testing.assert_array_equal(np.unique(draws[:, 0, 3]), [0, 0.6])
    np.testing.assert_allclose(draws.mean(axis=0), adjacency(), atol=0.04)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("options", [{}, {"batch": 8}, {"standardise": "none"}, {"fraction": 0.5}], ids=str)
def test_all_neighbours_train_as_the_stack_does(protocol, options):
    inputs = method_inputs(subjects=47, dimensions=7, institutions=3, folds=3, effect=0.5, seed=5, protocol=protocol)
    full = fedgcn.train(inputs, FedGCNSettings(**SCHEDULE, **options), DOUBLE)
    for neighbours in ((0, 0), (46, 46)):
        found = fedgcn.train(inputs, FedGCNSettings(**SCHEDULE, **options, neighbours=neighbours), DOUBLE)
        np.testing.assert_allclose(found.scores[..., 1], full.scores[..., 1], atol=1e-8, rtol=0)
        np.testing.assert_allclose(found.round_scores[..., 1], full.round_scores[..., 1], atol=1e-8, rtol=0)
        np.testing.assert_allclose(found.training_loss, full.training_loss, atol=1e-8, rtol=0)
        assert found.crossings == full.crossings


def test_an_unseen_site_is_scored_as_by_the_stack():
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, effect=0.5, split="leave-one-site-out")
    full, found = (
        fedgcn.train(inputs, FedGCNSettings(**SCHEDULE, neighbours=neighbours), DOUBLE) for neighbours in ((), (0, 0))
    )
    np.testing.assert_allclose(found.scores[..., 1], full.scores[..., 1], atol=1e-8, rtol=0)


def test_few_neighbours_learn_an_effect():
    inputs = method_inputs(subjects=90, dimensions=20, institutions=3, folds=3, effect=2.0)
    settings = FedGCNSettings(rounds=3, local_epochs=4, batch=16, neighbours=(2, 1), learning_rate=0.02)
    scores = np.nansum(fedgcn.train(inputs, settings, Run()).scores[..., 1], axis=0)
    assert ((scores > 0.5) == inputs.labels.max(axis=0)).mean() > 0.8


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_labels_of_tested_subjects_reach_no_prediction_of_their_fold(protocol):
    inputs = method_inputs(subjects=30, dimensions=7, institutions=2, folds=2, protocol=protocol)
    settings = FedGCNSettings(rounds=2, local_epochs=1, batch=8, neighbours=(2, 2))
    before = fedgcn.train(inputs, settings, Run()).round_scores[..., 1]
    for fold in range(2):
        after = fedgcn.train(scrambled(inputs, fold), settings, Run()).round_scores[..., 1]
        assert after[:, fold].tobytes() == before[:, fold].tobytes()


class Interrupted(Exception):  # noqa: N818
    pass


def test_a_resumed_run_draws_the_same_neighbours(tmp_path, monkeypatch):
    monkeypatch.setattr("brainfed.federation.pace.Pace.due", lambda self: True)
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3)
    settings = FedGCNSettings(**SCHEDULE, batch=5, neighbours=(2, 1))
    expected = fedgcn.train(inputs, settings, Run()).round_scores[..., 1]
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "predictions.parquet", "0a"), "0a")

    def stop(done, total, what):
        if done == 2:
            raise Interrupted

    with pytest.raises(Interrupted):
        fedgcn.train(inputs, settings, Run(checkpoint=checkpoint, progress=stop))
    seen = []
    run = Run(checkpoint=checkpoint, progress=lambda done, total, what: seen.append(done))
    assert fedgcn.train(inputs, settings, run).round_scores[..., 1].tobytes() == expected.tobytes()
    assert seen == [2, 3]


def test_other_draws_give_other_numbers():
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3)
    full, found = (
        fedgcn.train(inputs, FedGCNSettings(**SCHEDULE, neighbours=neighbours), DOUBLE) for neighbours in ((), (1, 1))
    )
    assert not torch.equal(torch.from_numpy(found.training_loss), torch.from_numpy(full.training_loss))


@pytest.mark.parametrize("neighbours", [(), (1, 1)])
def test_work_on_all_features_is_told_only_where_steps_read_them_all(neighbours):
    inputs = method_inputs(subjects=45, dimensions=7, institutions=3, folds=3)
    counts = fedgcn.train(inputs, FedGCNSettings(**SCHEDULE, neighbours=neighbours), Run()).counts
    assert {"parameters", "rounds", "local_epochs"} <= set(counts)
    assert ("first_layer_operations" in counts) == (neighbours == ())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"neighbours": (5,)}, "two numbers"), ({"neighbours": (5, -1)}, "two numbers"),
     ({"neighbours": (5, 5), "skip": "linear"}, "skip"),
     ({"neighbours": (5, 5), "precision": "bfloat16"}, "needs precision float32, found bfloat16"),
     ({"neighbours": (5, 5), "precision": "tf32"}, "needs precision float32, found tf32")],
)  # fmt: skip
@pytest.mark.parametrize("settings", [FedGCNSettings, FedNISettings])
def test_what_cannot_be_drawn_is_refused(settings, options, message):
    with pytest.raises(ValueError, match=message):
        settings(**options)
