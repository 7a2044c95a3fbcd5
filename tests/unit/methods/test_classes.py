"""More classes than two in every method, and folds without one."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.imaging.fitted import elimination_ranks
from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.baselines.declaration import MajoritySettings, PhenotypeSettings
from brainfed.methods.baselines.train import majority, phenotype
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.linear.declaration import LogisticSettings, RidgeSettings, SVMSettings
from brainfed.methods.linear.train import train_logistic, train_ridge, train_svm
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Run
from brainfed.samples import check, hidden_labels
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs, relabelled

SCHEDULE = {"rounds": 3, "local_epochs": 5, "learning_rate": 0.01}

METHODS = {"fedgcn": (train_fedgcn, FedGCNSettings), "fedmlp": (train_fedmlp, FederatedClassifierSettings)}

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


SUBJECTS = 90

TRUTH = np.arange(SUBJECTS) // 3 % 3
"""Three of a class in turn, one at each of three institutions."""


def inputs(truth=TRUTH, **changes):
    """Every class has a feature of its own."""
    features = np.random.default_rng(4).standard_normal((SUBJECTS, 8)).astype(np.float32)
    features[np.arange(SUBJECTS), truth] += 2.5
    made = method_inputs(subjects=SUBJECTS, features=features, diagnosis=truth)
    labels = hidden_labels(truth, made.fold)
    return replace(made, classes=3, labels=labels, graphs=(), **changes)


LINEAR = {
    "ridge": (train_ridge, RidgeSettings(alphas=(1.0,))),
    "svm": (train_svm, SVMSettings(costs=(1.0,))),
    "logistic": (train_logistic, LogisticSettings(costs=(1.0,))),
}


def right(made, scores, truth=TRUTH):
    own = scores[made.fold, np.arange(SUBJECTS)]
    return float((own.argmax(axis=1) == truth).mean())


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("training", ["local", "central"])
def test_linear_models_learn_three_classes(name, training):
    train, settings = LINEAR[name]
    made = inputs()
    found = train(made, replace(settings, training=training), Run())
    check(made, found)
    assert right(made, found.scores) > 0.6
    assert found.counts["parameters"] == 3 * 9


@pytest.mark.parametrize("name", LINEAR)
def test_a_class_is_fitted_against_the_rest(name):
    train, settings = LINEAR[name]
    made = inputs()
    found = train(made, settings, Run()).scores
    rest = replace(made, classes=2, labels=np.where(made.labels < 0, -1, made.labels == 2).astype(np.int64))
    alone = train(rest, settings, Run()).scores[..., 1]
    tested = np.isfinite(alone)
    if name == "logistic":
        np.testing.assert_allclose(found[tested].sum(axis=-1), 1)
        order = [np.argsort(found[fold, made.tested(fold), 2] > 0.5) for fold in range(made.folds)]
        assert len(order) == made.folds
    else:
        np.testing.assert_array_equal(found[..., 2][tested], alone[tested])


def test_an_institution_without_a_class_gives_it_the_lowest_score():
    truth = TRUTH.copy()
    truth[::3] = np.where(truth[::3] == 2, 0, truth[::3])
    made = inputs(truth)
    found = train_logistic(made, replace(LINEAR["logistic"][1], training="local"), Run())
    check(made, found)
    first = np.flatnonzero(made.institution == 0)
    assert (found.scores[made.fold[first], first, 2] == 0).all()


def test_majority_gives_the_shares():
    made = inputs()
    found = majority(made, MajoritySettings(), Run())
    check(made, found)
    training = made.labels[0, (made.institution == 0) & made.training(0)]
    first = np.flatnonzero((made.fold == 0) & (made.institution == 0))[0]
    np.testing.assert_allclose(found.scores[0, first], np.bincount(training, minlength=3) / len(training))


def test_phenotype_has_a_probability_a_class():
    made = inputs()
    ages = made.phenotypes.age.copy()
    ages[:] = 20 + 10 * TRUTH
    made = replace(made, phenotypes=replace(made.phenotypes, age=ages))
    found = phenotype(made, PhenotypeSettings(), Run())
    check(made, found)
    assert right(made, found.scores) > 0.9
    np.testing.assert_allclose(found.scores[np.isfinite(found.scores)].reshape(-1, 3).sum(axis=1), 1)


def test_elimination_keeps_the_features_of_all_classes():
    made = inputs()
    ranks = elimination_ranks(made.features[0], TRUTH)
    assert set(np.flatnonzero(ranks < 3)) == {0, 1, 2}


def test_elimination_of_two_classes_takes_any_codes():
    made = inputs()
    two = TRUTH > 0
    codes = TRUTH[two]
    np.testing.assert_array_equal(
        elimination_ranks(made.features[0][two], codes), elimination_ranks(made.features[0][two], codes - 1)
    )
