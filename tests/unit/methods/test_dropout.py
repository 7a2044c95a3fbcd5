"""Dropout of hidden activations: the plain loop's numbers, nothing at a rate of 0, nothing while scoring."""

import numpy as np
import pytest
import torch

from brainfed.configuration import validate
from brainfed.engines.stacked._network import Dropout
from brainfed.methods import FederatedClassifierSettings, SoloSettings
from brainfed.methods.fedsage.train import train_sage
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_centralgcn, train_fedgcn
from brainfed.methods.mlp.train import train_fedmlp, train_localmlp
from brainfed.runtime import Streams, UserError
from brainfed.runtime.jobs import Run
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 3, "local_epochs": 2, "learning_rate": 0.01}
SIZES = {"subjects": 47, "dimensions": 7, "institutions": 3, "folds": 3, "effect": 0.5, "seed": 5}
LIKE = torch.zeros(1)


@pytest.mark.parametrize("options", [{}, {"batch": 8}], ids=str)
@pytest.mark.parametrize(
    ("train", "settings", "graph"),
    [(train_fedgcn, FedGCNSettings, True), (train_fedmlp, FederatedClassifierSettings, False)],
)
def test_federated_training_equals_the_loop(train, settings, graph, options):
    inputs = method_inputs(**SIZES)
    found = train(inputs, settings(**SCHEDULE, **options, hidden=(8, 4), dropout=0.3), DOUBLE)
    loop = {"hidden": (8, 4), "graph": graph, "standardise": True, "noise": 0.01, **SCHEDULE, **options}
    np.testing.assert_allclose(found.scores[..., 1], train_by_loops(inputs, **loop, dropout=0.3), atol=1e-8, rtol=0)
    assert np.nanmax(np.abs(found.scores[..., 1] - train_by_loops(inputs, **loop))) > 1e-4


@pytest.mark.parametrize("every", [1, 2, 6])
@pytest.mark.parametrize(
    ("train", "settings", "graph", "pooled"),
    [(train_centralgcn, SoloSettings, True, True), (train_localmlp, SoloSettings, False, False)],
)
def test_solo_training_equals_the_loop_however_often_its_curve_is_drawn(train, settings, graph, pooled, every):
    inputs = method_inputs(**SIZES)
    chosen = settings(epochs=6, curve_every=every, learning_rate=0.01, hidden=(8, 4), dropout=0.5)
    expected = train_by_loops(
        inputs, hidden=(8, 4), graph=graph, standardise=True, rounds=1, local_epochs=6, learning_rate=0.01,
        exchange=False, pooled=pooled, dropout=0.5,
    )  # fmt: skip
    np.testing.assert_allclose(train(inputs, chosen, DOUBLE).scores[..., 1], expected, atol=1e-8, rtol=0)


def test_a_resumed_run_draws_the_same(resumed):
    inputs, settings = method_inputs(**SIZES), FedGCNSettings(**SCHEDULE, hidden=(8, 4), dropout=0.3)
    expected = train_fedgcn(inputs, settings, Run())
    again, seen = resumed(lambda run: train_fedgcn(inputs, settings, run), 2)
    assert seen == [2, 3]
    assert again.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()


def test_factors_drop_their_share_and_keep_the_mean():
    dropout = Dropout(0.3, (0, 4), Streams(1), local_epochs=5)
    chosen = torch.tensor([True, False, True])
    first, second = dropout.factors([4000, 10, 3000], [8, 4], chosen, (2, 1, 0), LIKE)
    assert first.shape == (3, 2, 4000, 8)
    assert second.shape == (3, 2, 4000, 4)
    np.testing.assert_allclose(np.unique(first[0].numpy()), [0, 1 / 0.7], rtol=1e-6)
    assert float(first[0].mean()) == pytest.approx(1, abs=0.02)
    assert float((first[2, :, :3000] == 0).double().mean()) == pytest.approx(0.3, abs=0.01)
    assert not first[1].any()
    assert not first[2, :, 3000:].any()


def test_draws_are_keyed_by_institution_fold_epoch_step_and_layer():
    dropout = Dropout(0.5, (0, 4), Streams(1), local_epochs=5)
    everyone = torch.ones(2, dtype=torch.bool)

    def drawn(*step):
        return dropout.factors([20, 20], [6, 6], everyone, step, LIKE)

    first, second = drawn(0, 0, 0)
    different = [first[0, 0], first[1, 0], first[0, 1], second[0, 0], drawn(0, 1, 0)[0][0, 0], drawn(0, 0, 1)[0][0, 0]]
    assert len({piece.numpy().tobytes() for piece in different}) == len(different)
    torch.testing.assert_close(drawn(1, 2, 0), drawn(0, 7, 0), rtol=0, atol=0)
    alone = Dropout(0.5, (4,), Streams(1), 5).factors([20, 35], [6, 6], everyone, (0, 0, 0), LIKE)
    torch.testing.assert_close(alone[0][0, 0, :20], first[0, 1], rtol=0, atol=0)


def test_nothing_is_dropped_while_scoring():
    """With nothing learnt from the dropped activations, the scores are those of the start."""
    inputs = method_inputs(**SIZES)
    still = {"rounds": 1, "local_epochs": 1, "learning_rate": 0.0, "noise": 0.0, "hidden": (8, 4)}
    whole, dropped = (train_fedgcn(inputs, FedGCNSettings(**still, dropout=rate), DOUBLE) for rate in (0.0, 0.9))
    np.testing.assert_array_equal(dropped.scores[..., 1], whole.scores[..., 1])
    assert (dropped.training_loss != whole.training_loss).all()


def test_graphsage_drops_too():
    inputs = method_inputs(**SIZES)
    schedule = {**SCHEDULE, "hidden": (8, 4)}
    whole, dropped = (
        train_sage(inputs, FederatedClassifierSettings(**schedule, dropout=rate), DOUBLE) for rate in (0.0, 0.5)
    )
    assert np.isfinite(dropped.scores[..., 1][inputs.fold, np.arange(47)]).all()
    assert (dropped.scores[..., 1] != whole.scores[..., 1])[inputs.fold, np.arange(47)].all()


def test_a_config_that_draws_neighbours_is_refused_with_a_sentence():
    with pytest.raises(UserError, match=r"variants\.large: neighbours: .* delete the key\."):
        validate(FedGCNSettings, {"neighbours": [2, 1]}, "variants.large")
