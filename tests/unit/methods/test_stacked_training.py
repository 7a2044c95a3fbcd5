"""Stacked training gives the numbers of the plain loop, for every method that trains by gradient."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.federation import FederationSettings
from brainfed.methods import FederatedClassifierSettings, SoloSettings
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_centralgcn, train_fedgcn, train_localgcn
from brainfed.methods.logistic_federated import train as logistic_federated
from brainfed.methods.logistic_federated.declaration import FederatedLogisticSettings
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Run
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs

DOUBLE = Run(precision="float64")
SCHEDULE = {"rounds": 3, "local_epochs": 4, "learning_rate": 0.01}

CASES = {
    "fedgcn": (train_fedgcn, FedGCNSettings(**SCHEDULE, hidden=(8, 4)), {"hidden": (8, 4), "graph": True}),
    "fedmlp": (
        train_fedmlp,
        FederatedClassifierSettings(**SCHEDULE, hidden=(8, 4)),
        {"hidden": (8, 4), "graph": False},
    ),
    "logistic-federated": (
        logistic_federated.train,
        FederatedLogisticSettings(solver="fedavg", **SCHEDULE),
        {"hidden": (), "graph": False},
    ),
}


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("name", list(CASES))
def test_federated_training_equals_the_loop(name, protocol):
    train, settings, shape = CASES[name]
    inputs = method_inputs(subjects=61, dimensions=12, institutions=3, folds=4, effect=0.5, seed=3, protocol=protocol)
    outcome = train(inputs, settings, DOUBLE)
    expected = train_by_loops(inputs, **shape, **SCHEDULE, standardise=True, noise=0.01)
    assert_same_scores(outcome.scores[..., 1], expected)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize(
    ("train", "settings", "pooled"),
    [
        (train_localgcn, SoloSettings(epochs=12, curve_every=4, learning_rate=0.01, hidden=(8, 4)), False),
        (train_centralgcn, SoloSettings(epochs=12, curve_every=4, learning_rate=0.01, hidden=(8, 4)), True),
    ],
    ids=["localgcn", "centralgcn"],
)
def test_solo_training_equals_the_loop(train, settings, pooled, protocol):
    inputs = method_inputs(subjects=50, dimensions=9, institutions=3, folds=3, effect=0.5, seed=4, protocol=protocol)
    outcome = train(inputs, settings, DOUBLE)
    expected = train_by_loops(
        inputs,
        hidden=(8, 4),
        graph=True,
        standardise=True,
        rounds=3,
        local_epochs=4,
        learning_rate=0.01,
        exchange=False,
        pooled=pooled,
    )
    assert_same_scores(outcome.scores[..., 1], expected)


@pytest.mark.parametrize(
    "options",
    [
        {"standardise": "none"},
        {"weighting": "subjects"},
        {"batch": 5},
        {"weight_decay": 0.1},
        {"proximal": 0.5},
        {"noise": 0.0},
    ],
    ids=lambda options: next(iter(options)),
)
def test_every_setting_of_the_core_equals_the_plain_loop(options):
    inputs = method_inputs(subjects=47, dimensions=7, institutions=3, folds=3, effect=0.5, seed=5)
    outcome = train_fedgcn(inputs, FedGCNSettings(**SCHEDULE, hidden=(8, 4), **options), DOUBLE)
    loop = {"noise": 0.01, **options}
    standardise = loop.pop("standardise", "institution") == "institution"
    expected = train_by_loops(inputs, hidden=(8, 4), graph=True, standardise=standardise, **SCHEDULE, **loop)
    assert_same_scores(outcome.scores[..., 1], expected)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("name", list(CASES))
def test_bfloat16_products_come_near_those_of_float32_and_tf32_is_for_gpus(name, protocol):
    train, settings, _ = CASES[name]
    inputs = method_inputs(subjects=61, dimensions=40, institutions=3, folds=4, effect=0.5, seed=6, protocol=protocol)
    exact, tf32, rough = (
        train(inputs, replace(settings, precision=precision), Run()).scores[..., 1]
        for precision in ("float32", "tf32", "bfloat16")
    )
    assert tf32.tobytes() == exact.tobytes()
    assert 0 < np.nanmax(np.abs(rough - exact)) < 0.05


def test_single_precision_stays_close_to_double():
    inputs = method_inputs(subjects=61, dimensions=40, institutions=3, folds=4, effect=0.5, seed=6)
    settings = FedGCNSettings(rounds=3, local_epochs=4)
    single = train_fedgcn(inputs, settings, Run())
    double = train_fedgcn(inputs, settings, DOUBLE)
    np.testing.assert_allclose(single.scores[..., 1], double.scores[..., 1], atol=1e-4)


def test_a_client_that_sits_out_cannot_keep_its_optimiser():
    with pytest.raises(ValueError, match="fraction"):
        FederationSettings(fraction=0.5, optimiser_state="keep")


def assert_same_scores(found, expected):
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, atol=1e-8, rtol=0, equal_nan=True)
