"""From a cut graph to scores: nodes are generated, and their features change the scores of real subjects."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.inpainting import CentroidSettings, FedSageSettings, FusingSettings, InpaintingSettings, centroids, fuse
from brainfed.inpainting.fedni import drawing
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.fedni import train as fedni_training
from brainfed.methods.fedsage import train as fedsage_training
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.runtime import ArrayFile
from brainfed.runtime.jobs import Run
from support.samples.inpainting_inputs import inpainting_inputs
from support.samples.method_inputs import method_inputs

SHORT = {"rounds": 2, "local_epochs": 3}
METHODS = {
    "fedni": (
        fedni.train,
        drawing.load,
        InpaintingSettings(rounds=3, local_epochs=5),
        FusingSettings(),
        None,
        fedni_training.train,
        FedGCNSettings(**SHORT),
    ),
    "fedsage-plus": (
        fedsage.train,
        fedsage.load,
        FedSageSettings(local_epochs=15, rounds=2),
        FusingSettings(cap=None, rounding="truncate", edges="binary"),
        5,
        fedsage_training.train,
        FederatedClassifierSettings(**SHORT),
    ),
    "fedni-centroids": (
        centroids.train,
        centroids.load,
        CentroidSettings(min_group=4),
        FusingSettings(cap=None, edges="k"),
        None,
        fedni_training.train,
        FedGCNSettings(**SHORT),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_generated_features_change_the_scores_of_real_subjects(name):
    train, load, settings, fusing, most, classify, classifier = METHODS[name]
    inputs = inpainting_inputs(scope="global_cut")
    generator = load(inputs, settings, ArrayFile(train(inputs, settings, Run()).arrays, {}), Run())
    fused = fuse(inputs, generator, fusing, most)
    assert len(fused.parent) >= 15, "of some 200 missing neighbours"
    read = method_inputs(features=inputs.features, dimensions=40)
    noise = np.random.default_rng(0).uniform(-1, 1, fused.features.shape).astype(np.float32)
    scores = [
        classify(replace(read, graphs=(), fused=(graph,)), classifier, Run()).scores[..., 1]
        for graph in (fused, replace(fused, features=noise))
    ]
    shown = ~np.isnan(scores[0])
    assert shown.any() and np.abs(scores[0] - scores[1])[shown].max() > 1e-3
