"""Three classes: the plain loop's numbers, a signal that is found, and chance without one."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods.gcn.fedgcn import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.mlp.fedmlp import FedMLPSettings
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs.run import Run
from brainfed.samples.results import check
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs, relabelled

SCHEDULE = {"rounds": 3, "local_epochs": 5, "learning_rate": 0.01}
METHODS = {"fedgcn": (train_fedgcn, FedGCNSettings), "fedmlp": (train_fedmlp, FedMLPSettings)}
both_methods = pytest.mark.parametrize("name", list(METHODS))


def three_classes(effect, seed, subjects=90):
    """Inputs with labels 0, 1, 2 at random, each class higher in columns of its own, and the labels (n,)."""
    rng = np.random.default_rng([seed, 3])
    truth = rng.permutation(np.arange(subjects) % 3)
    features = rng.standard_normal((subjects, 24)).astype(np.float32)
    for label in range(3):
        features[truth == label, 4 * label : 4 * label + 4] += effect
    plain = method_inputs(subjects, 24, 3, 3, features=features, seed=seed)
    return replace(relabelled(plain, truth), classes=3), truth


def accuracy(name, effect, seed):
    train, settings = METHODS[name]
    inputs, truth = three_classes(effect, seed)
    outcome = train(inputs, settings(**SCHEDULE), Run())
    check(inputs, outcome)
    scores = outcome.scores[inputs.fold, np.arange(len(truth))]
    np.testing.assert_allclose(scores.sum(axis=1), 1, atol=1e-6)
    return (scores.argmax(axis=1) == truth).mean()


@both_methods
def test_training_equals_the_loop(name):
    train, settings = METHODS[name]
    inputs, _ = three_classes(0.5, 0)
    found = train(inputs, settings(**SCHEDULE, hidden=(8, 4)), Run(precision="float64"))
    loop = {"hidden": (8, 4), "graph": name == "fedgcn", "standardise": True, "noise": 0.01, **SCHEDULE}
    np.testing.assert_allclose(found.scores[..., 2], train_by_loops(inputs, **loop), atol=1e-8, rtol=0)
    sent = {row["name"]: row["shape"] for row in found.crossings}
    assert sent["weight-2"] == "4x3"


@both_methods
def test_a_signal_is_found(name):
    assert np.mean([accuracy(name, 2.0, seed) for seed in range(2)]) > 0.7


@both_methods
def test_without_one_every_third_guess_is_right(name):
    found = np.array([accuracy(name, 0.0, seed) for seed in range(8)])
    assert abs(found.mean() - 1 / 3) < 3 * found.std(ddof=1) / np.sqrt(len(found))
