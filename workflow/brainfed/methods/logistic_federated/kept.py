"""The kept model of federated logistic regression, and scores of new patients by it.

The rows are (x - mean) / sd / norm; of two classes p = sigmoid(w z + b), of more each class against the rest, divided
by their sum.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from torch import Tensor

from brainfed.engines.stacked.network import score_alone
from brainfed.methods.logistic_federated.design import Design
from brainfed.models.logistic_regression import LogisticRegression
from brainfed.samples.class_scores import of_two_classes
from brainfed.samples.kept.fitted_model import Arrays, FittedModel, Scored, with_alike_shared


def kept_logistic(designs: Sequence[Design], weight: Tensor, bias: Tensor) -> FittedModel:
    """The model of one fold of `solver: lbfgs`.

    Args:
        designs: of the institutions.
        weight: (P, d).
        bias: (P,).
    """
    moments = {name: np.stack([getattr(own, name).cpu().numpy() for own in designs]) for name in ("mean", "divisor")}
    return with_alike_shared({"weight": weight.cpu().numpy(), "bias": bias.cpu().numpy()}, moments)


def score(model: Arrays, features: NDArray[np.float32], settings: Mapping[str, Any]) -> Scored:
    """Probabilities (n, C) of features (n, d)."""
    if settings["solver"] == "fedavg":
        dimensions, classes = model["weight-0"].shape
        return score_alone(LogisticRegression(dimensions, classes), model, features)
    rows = (features - model["mean"].astype(np.float64)) / model["divisor"]
    found = expit(rows @ model["weight"].T.astype(np.float64) + model["bias"])
    if found.shape[1] == 1:
        return Scored(of_two_classes(found[:, 0], "probability"), rows)
    return Scored(found / found.sum(axis=1, keepdims=True), rows)
