"""The kept models of linear methods, and scores of new patients by them: weights for raw features, and their moments.

The moments scale the rows whose length says how far a patient lies from the training subjects; no score needs them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from brainfed.methods.linear.dual import LinearModel
from brainfed.runtime.score_kinds import ScoreKind
from brainfed.samples.inputs import Arrays, FittedModel, FloatArray, IntArray, Scored, with_alike_shared
from brainfed.samples.labelled_subjects import of_two_classes
from brainfed.samples.scaling import training_moments


def kept_linear(
    features: FloatArray,
    training: NDArray[np.bool_],
    pools: IntArray,
    models: Mapping[int, Sequence[LinearModel]],
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


def score_margin(model: Arrays, features: NDArray[np.float32], settings: Mapping[str, Any]) -> Scored:
    """Margins (n, C) of features (n, d)."""
    return _scored(model, features, settings, "margin")


def score_probability(model: Arrays, features: NDArray[np.float32], settings: Mapping[str, Any]) -> Scored:
    """Probabilities (n, C) of features (n, d)."""
    return _scored(model, features, settings, "probability")


def _scored(model: Arrays, features: NDArray[np.float32], settings: Mapping[str, Any], kind: ScoreKind) -> Scored:
    raw = features.astype(np.float64)
    found = raw @ model["weights"].T + model["intercepts"]
    found = expit(found) if kind == "probability" else found
    if found.shape[1] == 1:
        found = of_two_classes(found[:, 0], kind)
    elif kind == "probability":
        found = found / found.sum(axis=1, keepdims=True)
    rows = raw - model["mean"]
    return Scored(found, rows / model["deviation"] if settings["standardise"] == "institution" else rows)
