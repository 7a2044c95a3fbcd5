"""A network with centred subjects sees nothing of what all features of a subject share."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods.fedni.fedni import FedNISettings
from brainfed.methods.fedni.train import train as train_fedni
from brainfed.methods.fedsage.fedsage_plus import FedSagePlusSettings
from brainfed.methods.fedsage.train import train as train_fedsage_plus
from brainfed.methods.gcn.centralgcn import CentralGCNSettings
from brainfed.methods.gcn.fedgcn import FedGCNSettings
from brainfed.methods.gcn.localgcn import LocalGCNSettings
from brainfed.methods.gcn.train import train_centralgcn, train_fedgcn, train_localgcn
from brainfed.methods.mlp.centralmlp import CentralMLPSettings
from brainfed.methods.mlp.fedmlp import FedMLPSettings
from brainfed.methods.mlp.localmlp import LocalMLPSettings
from brainfed.methods.mlp.train import train_centralmlp, train_fedmlp, train_localmlp
from brainfed.runtime.jobs.run import Run
from support.samples.fused_inputs import with_fused
from support.samples.method_inputs import method_inputs

EPOCHS = {"epochs": 6, "curve_every": 3, "centre": "subject"}
ROUNDS = {"rounds": 2, "local_epochs": 3, "centre": "subject"}
CASES = {
    "fedmlp": (train_fedmlp, FedMLPSettings(**ROUNDS)),
    "localmlp": (train_localmlp, LocalMLPSettings(**EPOCHS)),
    "centralmlp": (train_centralmlp, CentralMLPSettings(**EPOCHS)),
    "fedgcn": (train_fedgcn, FedGCNSettings(**ROUNDS)),
    "localgcn": (train_localgcn, LocalGCNSettings(**EPOCHS)),
    "centralgcn": (train_centralgcn, CentralGCNSettings(**EPOCHS)),
    "fedni": (train_fedni, FedNISettings(**ROUNDS)),
    "fedsage-plus": (train_fedsage_plus, FedSagePlusSettings(**ROUNDS)),
}
COMPLETED = ("fedni", "fedsage-plus")
COLUMNS, GRID = 16, 1024
"""Multiples of 1 / 1024 in 16 columns have means that float32 holds without rounding."""


def on_grid(values):
    return np.round(values * GRID) / GRID


@pytest.mark.parametrize("name", list(CASES))
def test_a_shift_of_a_whole_subject_changes_no_score(name):
    train, settings = CASES[name]
    inputs, run = method_inputs(60, COLUMNS), Run(precision="float64")
    wide = replace(inputs, features=(on_grid(inputs.features[0].astype(np.float64)),))
    shift = on_grid(4 * np.random.default_rng(5).standard_normal((60, 1)))
    shifted = replace(wide, features=(wide.features[0] + shift,))
    if name in COMPLETED:
        wide, shifted = with_fused(wide), with_fused(shifted)
    scores = train(wide, settings, run).scores
    np.testing.assert_allclose(train(shifted, settings, run).scores, scores, atol=1e-8)
    plain = replace(settings, centre="none")
    tested = np.isfinite(scores)
    assert np.abs(train(shifted, plain, run).scores - train(wide, plain, run).scores)[tested].max() > 0.01
