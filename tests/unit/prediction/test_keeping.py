"""Keeping models: everybody trains once more, and a model that scores otherwise than its training is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from brainfed.imaging.settings import FeatureSettings
from brainfed.methods.fedtangent.settings import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_ridge_federated
from brainfed.prediction.keeping import keep
from brainfed.prediction.model_file import EVERYBODY, read_model
from brainfed.runtime.artefacts import write_arrays
from brainfed.runtime.jobs.run import Run
from method_inputs import diagnosis_of, method_inputs

INPUTS = method_inputs(subjects=41, dimensions=15)
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
    assert sum(sum(row["subjects"]) for row in model.about["training"]) == 41


def test_a_model_that_scores_otherwise_than_its_training_is_refused(tmp_path, files):
    outcome = train(INPUTS)
    wrong = replace(outcome, scores=outcome.scores + 0.1)
    with pytest.raises(ValueError, match="expected the kept models to give the scores of the folds"):
        keep(tmp_path / "model", KEPT, files, INPUTS, diagnosis_of(INPUTS), wrong, train)
    assert not (tmp_path / "model").exists()
