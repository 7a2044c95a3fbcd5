"""Scores of new patients by a kept multilayer perceptron."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from brainfed.engines.stacked import score_alone
from brainfed.models import MLP
from brainfed.runtime import Float32
from brainfed.samples import Arrays, Scored, centred_subjects


def score(model: Arrays, features: Float32, settings: Mapping[str, Any]) -> Scored:
    """Probabilities (n, C) of features (n, d)."""
    if settings["centre"] == "subject":
        features = centred_subjects(features).astype(np.float32)
    dimensions, first = model["weight-0"].shape
    second, classes = model["weight-2"].shape
    return score_alone(MLP(dimensions, (first, second), classes), model, features)
