"""Attacks and defences reach the trainings that have these settings, and change nothing unless they are set."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.engines.stacked import _training as training
from brainfed.federation import RobustnessSettings
from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_ridge_federated
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Run
from support.samples.method_inputs import diagnosis_of, method_inputs

QUICK = {"rounds": 3, "local_epochs": 4, "learning_rate": 0.02, "hidden": (6, 3)}
AVERAGED = {"alphas": (0.1,), "solver": "fedavg", "rounds": 10}


def mlp(inputs, run=None, **robustness):
    return train_fedmlp(inputs, FederatedClassifierSettings(**QUICK, **robustness), run or Run())


def ridge(inputs, **options):
    return train_ridge_federated(inputs, FederatedRidgeSettings(**(AVERAGED | options)), Run())


def own_scores(outcome, inputs):
    """(n,) the score of the second class by the model of the subject's own fold."""
    return outcome.scores[inputs.fold, np.arange(len(inputs.fold)), 1]


def auc(outcome, inputs):
    return roc_auc_score(diagnosis_of(inputs), own_scores(outcome, inputs))


@pytest.mark.parametrize("train", [mlp, ridge])
def test_a_far_upload_breaks_the_mean_and_the_median_holds(train):
    inputs = method_inputs(100, 20, institutions=5, folds=4, effect=2.0)
    plain, poisoned = auc(train(inputs), inputs), auc(train(inputs, attack="paf", attacked=0.2), inputs)
    defended = auc(train(inputs, attack="paf", attacked=0.2, defence="median"), inputs)
    assert plain > 0.85
    assert poisoned < plain - 0.15
    assert defended > plain - 0.1


@pytest.mark.parametrize("settings", [{"attack": "paf", "attacked": 0.0}, {"attack": "none"}])
@pytest.mark.parametrize("train", [mlp, ridge])
def test_without_poisoned_institutions_every_byte_stays(train, settings):
    inputs = method_inputs(40, 8, institutions=4, folds=3)
    plain, same = train(inputs), train(inputs, **settings)
    assert same.round_scores.tobytes() == plain.round_scores.tobytes()
    assert same.crossings == plain.crossings


def test_one_round_of_turned_and_scaled_updates_is_as_computed_by_hand():
    """Ridge starts at zero, and its scores are linear in the weights: s = b + x'w, x'(-w) and x'(10 w)."""
    inputs = method_inputs(40, 8, institutions=4, folds=3)
    plain, turned, scaled = (
        own_scores(ridge(inputs, rounds=1, attack=attack, attacked=0.25 if attack == "none" else 1.0), inputs)
        for attack in ("none", "sign_flip", "scale")
    )
    intercept = (plain + turned) / 2
    assert np.abs(plain - intercept).max() > 0.01
    np.testing.assert_allclose(scaled, intercept + 10 * (plain - intercept), atol=1e-10)


def test_turned_labels_in_all_institutions_turn_the_scores():
    inputs = method_inputs(40, 8, institutions=4, folds=3)
    plain, turned = ridge(inputs), ridge(inputs, attack="label_flip", attacked=1.0)
    np.testing.assert_allclose(own_scores(turned, inputs), -own_scores(plain, inputs), atol=1e-10)
    assert not np.array_equal(mlp(inputs, attack="label_flip").scores, mlp(inputs).scores, equal_nan=True)


@pytest.mark.parametrize("attack", ["paf", "ofom", "sign_flip", "scale"])
def test_an_attacked_training_resumes_and_is_cut_into_stacks_without_a_change(attack, resumed, monkeypatch):
    inputs = method_inputs(40, 8, institutions=4, folds=3)
    robustness = {"attack": attack, "attacked": 0.5, "defence": "trimmed_mean"}
    expected = mlp(inputs, **robustness).round_scores
    assert not np.array_equal(expected, mlp(inputs, defence="trimmed_mean").round_scores, equal_nan=True)
    again, _ = resumed(lambda run: mlp(inputs, run, **robustness), 2)
    assert again.round_scores.tobytes() == expected.tobytes()
    exact = Run(precision="float64")
    together = mlp(inputs, exact, **robustness).round_scores
    monkeypatch.setattr(training, "STACK_BYTES", 1)
    np.testing.assert_allclose(mlp(inputs, exact, **robustness).round_scores, together, rtol=1e-9, atol=1e-12)


def test_an_unseen_site_is_scored_under_attack_by_a_model_that_lacks_it():
    inputs = method_inputs(48, 8, institutions=4, split="leave-one-site-out")
    scores = [mlp(inputs, attack="paf", attacked=0.5, defence=defence) for defence in ("none", "geometric_median")]
    assert all(np.isfinite(own_scores(outcome, inputs)).all() for outcome in scores)
    assert not np.array_equal(*(own_scores(outcome, inputs) for outcome in scores))


def test_far_uploads_stay_finite_over_many_rounds_without_a_defence():
    inputs = method_inputs(40, 8, institutions=4, folds=3)
    long = FederatedClassifierSettings(**(QUICK | {"rounds": 40, "local_epochs": 1}), attack="paf", attacked=1.0)
    assert np.isfinite(own_scores(train_fedmlp(inputs, long, Run()), inputs)).all()
    assert np.isfinite(own_scores(ridge(inputs, rounds=150, attack="paf", attacked=1.0), inputs)).all()


@pytest.mark.parametrize(("key", "value"), [("attack", "label_flip"), ("attack", "paf"), ("defence", "median")])
def test_sums_of_products_are_neither_attacked_nor_defended(key, value):
    with pytest.raises(ValueError, match=f"{key}: {value} needs solver: fedavg"):
        FederatedRidgeSettings(**{key: value})


def test_a_share_of_poisoned_institutions_without_an_attack_is_refused():
    with pytest.raises(ValueError, match=r"attacked: expected an attack, found attacked: 0\.5 without one"):
        RobustnessSettings(attacked=0.5)
    assert RobustnessSettings(attack="paf", attacked=0.5).poisons
