"""The kept models of linear methods, and scores of new patients by them: weights for raw features, and their moments.

The moments scale the rows whose length says how far a patient lies from the training subjects; no score needs them.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit

from brainfed.methods.linear._dual import LinearModel
from brainfed.runtime import BoolArray, Float32, Float64, FloatArray, IntArray, ScoreKind
from brainfed.samples import Arrays, FittedModel, Scored, of_two_classes, training_moments, with_alike_shared


def kept_linear(
    features: FloatArray, training: BoolArray, pools: IntArray, models: Mapping[int, Sequence[LinearModel]]
) -> FittedModel:
    """The models of one fold: one of all subjects, or one a pool, NaN where a pool trained none.

    Args:
        features: (n, d).
        training: (n,) mask.
        pools: (n,) pool of each subject.
        models: pool -> its models.
    """
    count, dimensions = int(pools.max()) + 1, features.shape[1]
    modelled = len(next(iter(models.values())))
    stacks = {
        "weights": np.full((count, modelled, dimensions), np.nan),
        "intercepts": np.full((count, modelled), np.nan),
        "mean": np.full((count, dimensions), np.nan),
        "deviation": np.full((count, dimensions), np.nan),
    }
    for pool, own in models.items():
        stacks["weights"][pool] = [model.weights for model in own]
        stacks["intercepts"][pool] = [model.intercept for model in own]
        stacks["mean"][pool], stacks["deviation"][pool] = training_moments(features, training & (pools == pool))
    return with_alike_shared({}, stacks)


def score(model: Arrays, features: Float32, settings: Mapping[str, Any], *, kind: ScoreKind) -> Scored:
    """Margins or probabilities (n, C) of features (n, d)."""
    raw = features.astype(np.float64)
    scores = scores_of_models(raw @ model["weights"].T + model["intercepts"], kind)
    rows = raw - model["mean"]
    return Scored(scores, rows / model["deviation"] if settings["standardise"] == "institution" else rows)


score_margin = partial(score, kind="margin")
score_probability = partial(score, kind="probability")


def scores_of_models(margins: Float64, kind: ScoreKind) -> Float64:
    """Scores (n, C) from the margins (n, K) of the modelled classes; probabilities of several models sum to 1."""
    scores: Float64 = expit(margins) if kind == "probability" else margins
    if scores.shape[1] == 1:
        return of_two_classes(scores[:, 0], kind)
    return scores / scores.sum(axis=1, keepdims=True) if kind == "probability" else scores
