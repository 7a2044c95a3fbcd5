"""Private logistic regression and private FedMLP: steps on rows that are made from each subject alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.federation import noise_multiplier
from brainfed.methods.private_linear.declaration import PrivateMLPSettings, PrivateNetworkSettings
from brainfed.methods.private_linear.train import train_fedmlp_dp, train_logistic_dp
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import check
from reference.private_logistic import probabilities_of
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled

SMALL = {"rounds": 3, "epsilon": 20.0}
METHODS = {
    "logistic": (train_logistic_dp, PrivateNetworkSettings),
    "mlp": (train_fedmlp_dp, lambda **given: PrivateMLPSettings(hidden=(8, 4), **given)),
}
every_method = pytest.mark.parametrize("name", METHODS)
splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])


def outcome_of(name, inputs, run=None, **changes):
    train, settings = METHODS[name]
    return train(inputs, settings(**SMALL | changes), run or Run())


@splits
@pytest.mark.parametrize("changes", [{"privacy": "none"}, {"epsilon": 20.0}, {"epsilon": 20.0, "clip": 0.2}])
def test_logistic_regression_equals_the_plain_version(split, changes):
    inputs = method_inputs(45, 12, split=split)
    settings = PrivateNetworkSettings(rounds=3, **changes)
    multiplier = noise_multiplier(settings, 1.0, 3)
    found = train_logistic_dp(inputs, settings, Run(precision="float64")).scores
    for fold in range(inputs.folds):
        tested = inputs.tested(fold)
        expected = probabilities_of(inputs, fold, settings, multiplier)
        np.testing.assert_allclose(found[fold, tested], expected[tested], atol=1e-6)


@every_method
@splits
def test_every_subject_has_a_score_and_every_institution_its_row(name, split):
    inputs = method_inputs(60, 20, split=split)
    found = outcome_of(name, inputs)
    check(inputs, found)
    assert {(row["institution"], row["fold"]) for row in found.privacy} == {
        (institution, fold)
        for code, institution in enumerate(inputs.institutions)
        for fold in range(inputs.folds)
        if (inputs.training(fold) & (inputs.institution == code)).any()
    }
    assert all(19.5 < row["epsilon_spent"] <= 20 for row in found.privacy)
    assert outcome_of(name, inputs, privacy="none").privacy == ()


@every_method
def test_weights_alone_cross(name):
    rows = outcome_of(name, method_inputs(60, 20)).crossings
    layers = 1 if name == "logistic" else 3
    assert {row["name"] for row in rows} == {f"{part}-{i}" for part in ("weight", "bias") for i in range(layers)}


@every_method
def test_three_classes_are_learnt(name):
    inputs = method_inputs(60, 20)
    inputs = relabelled(inputs, (diagnosis_of(inputs) + np.arange(60) // 15) % 3)
    found = outcome_of(name, inputs)
    check(inputs, found)
    assert found.scores.shape == (3, 60, 3)


@every_method
def test_an_effect_is_found_without_noise(name):
    inputs = method_inputs(90, 30, effect=2.0)
    scores = outcome_of(name, inputs, privacy="none", rounds=20, learning_rate=0.5).scores
    assert roc_auc_score(diagnosis_of(inputs), scores[inputs.fold, np.arange(90), 1]) > 0.75


@every_method
def test_an_interrupted_training_goes_on_to_the_same_bytes_and_spends_once(resumed, name):
    inputs = method_inputs(45, 12)
    whole = outcome_of(name, inputs)
    again, _ = resumed(lambda run: outcome_of(name, inputs, run), 2)
    assert again.scores.tobytes() == whole.scores.tobytes()
    assert again.privacy == whole.privacy
    assert again.crossings == whole.crossings


@every_method
def test_features_that_are_fitted_are_refused(name):
    inputs = method_inputs(45, 12)
    with pytest.raises(UserError, match="the same for all folds"):
        outcome_of(name, replace(inputs, features=inputs.features * 5))
