"""Keeping models: everybody trains once more, and a model that scores otherwise than its training is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.imaging import FeatureSettings
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_ridge_federated
from brainfed.methods.linear.declaration import RIDGE, RidgeSettings
from brainfed.methods.linear.train import train_ridge
from brainfed.prediction.model_file import EVERYBODY, keep, read_model
from brainfed.runtime import write_arrays
from brainfed.runtime.jobs import Run
from brainfed.samples import training_moments
from support.samples.method_inputs import diagnosis_of, method_inputs

INPUTS = method_inputs(subjects=41, dimensions=15, folds=5)
SETTINGS = FederatedRidgeSettings(alphas=(1.0,))
KEPT = {
    "score": "brainfed.engines.linear.kept:score",
    "about": {"drawn": "random", "settings": vars(SETTINGS), "features": vars(FeatureSettings())},
}


def train(inputs):
    return train_ridge_federated(inputs, SETTINGS, Run(keeps_models=True))


@pytest.fixture
def files(tmp_path):
    path = tmp_path / "features.safetensors"
    write_arrays(path, {}, {"regions": ["a", "b", "c", "d", "e", "f"]})
    return SimpleNamespace(covariances=[], split="", included="", regions=[], features=[path])


def test_the_model_of_everybody_learns_from_all_labels_and_tests_nobody(tmp_path, files):
    seen = []

    def spied(inputs):
        seen.append(inputs)
        return train(inputs)

    truth = diagnosis_of(INPUTS)
    keep(tmp_path / "model", KEPT, files, INPUTS, truth, train(INPUTS), spied)
    (everybody,) = seen
    np.testing.assert_array_equal(everybody.labels, truth[None])
    assert not everybody.tested(0).any()
    model = read_model(tmp_path / "model")
    assert model.parts.keys() == {EVERYBODY, *(f"fold-{fold}" for fold in range(INPUTS.folds))}
    mean = model.parts[EVERYBODY].model.shared["mean"]
    np.testing.assert_allclose(mean, INPUTS.features[0].mean(axis=0), atol=1e-6)
    assert model.about["distance"]["subjects"] == 41
    held_out = model.about["held_out"]
    scored = np.argmax(INPUTS.fold == np.arange(INPUTS.folds)[:, None], axis=0)
    scores = train(INPUTS).scores[scored, np.arange(41), 1]
    folds = [np.flatnonzero(INPUTS.fold == fold) for fold in range(INPUTS.folds)]
    assert held_out["auc"] == pytest.approx(np.mean([roc_auc_score(truth[own], scores[own]) for own in folds]))
    assert 0.6 < held_out["guessing"] < 0.7
    assert sum(sum(row["subjects"]) for row in model.about["training"]) == 41


def test_institutions_that_are_scaled_apart_have_distances_of_their_own(tmp_path, files):
    own = RidgeSettings(training="local", alphas=(1.0,))
    kept = {"score": RIDGE.capabilities.model, "about": KEPT["about"] | {"settings": vars(own)}}
    features = INPUTS.features[0].copy()
    features[INPUTS.institution == 2] *= np.linspace(0.2, 3.0, (INPUTS.institution == 2).sum())[:, None]
    inputs = replace(INPUTS, features=(features,))

    def train_alone(given):
        return train_ridge(given, own, Run(keeps_models=True))

    keep(tmp_path / "model", kept, files, inputs, diagnosis_of(INPUTS), train_alone(inputs), train_alone)
    spread = read_model(tmp_path / "model").about["distance"]
    expected = [held_out_lengths(inputs, code).mean() for code in range(3)]
    assert len(set(expected)) == 3
    np.testing.assert_array_less(spread["means"], expected)
    np.testing.assert_allclose(spread["means"], expected, rtol=0.1)
    assert spread["subjects"] == 41


def held_out_lengths(inputs, code):
    """Of an institution's tested subjects, z-scored with the training subjects of its fold."""
    found = []
    for fold in range(inputs.folds):
        there = inputs.institution == code
        mean, deviation = training_moments(inputs.features[0], inputs.training(fold) & there)
        tested = inputs.features[0][inputs.tested(fold) & there]
        found.append(np.linalg.norm((tested - mean) / deviation, axis=1))
    return np.concatenate(found)


def test_a_model_that_scores_otherwise_than_its_training_is_refused(tmp_path, files):
    outcome = train(INPUTS)
    wrong = replace(outcome, scores=outcome.scores + 0.1)
    with pytest.raises(ValueError, match="expected the kept models to give the scores of the folds"):
        keep(tmp_path / "model", KEPT, files, INPUTS, diagnosis_of(INPUTS), wrong, train)
    assert not (tmp_path / "model").exists()
