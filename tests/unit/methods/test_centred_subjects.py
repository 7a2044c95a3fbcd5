"""A perceptron with centred subjects sees nothing of what all features of a subject share."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods.mlp.centralmlp import CentralMLPSettings
from brainfed.methods.mlp.fedmlp import FedMLPSettings
from brainfed.methods.mlp.localmlp import LocalMLPSettings
from brainfed.methods.mlp.train import train_centralmlp, train_fedmlp, train_localmlp
from brainfed.runtime.jobs.run import Run
from method_inputs import method_inputs

EPOCHS = {"epochs": 6, "curve_every": 3, "centre": "subject"}
CASES = {
    "fedmlp": (train_fedmlp, FedMLPSettings(rounds=2, local_epochs=3, centre="subject")),
    "localmlp": (train_localmlp, LocalMLPSettings(**EPOCHS)),
    "centralmlp": (train_centralmlp, CentralMLPSettings(**EPOCHS)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_a_shift_of_a_whole_subject_changes_no_score(name):
    train, settings = CASES[name]
    inputs, run = method_inputs(60, 20), Run(precision="float64")
    wide = replace(inputs, features=(inputs.features[0].astype(np.float64),))
    shift = np.random.default_rng(5).standard_normal((60, 1)) * 4
    shifted = replace(wide, features=(wide.features[0] + shift,))
    scores = train(wide, settings, run).scores
    np.testing.assert_allclose(train(shifted, settings, run).scores, scores, atol=1e-8)
    plain = replace(settings, centre="none")
    tested = np.isfinite(scores)
    assert np.abs(train(shifted, plain, run).scores - train(wide, plain, run).scores)[tested].max() > 0.01
