"""Patterns of federated logistic regression (Haufe et al. 2014, eq. 6), from one more sum over institutions.

The rows x of the training subjects have mean 0 over all institutions. Of the scores m = x'w an institution sends the
sums of m and m^2, that of m x in the units of its own features, and its numbers of subjects by class. With the totals
over N subjects

    A = sum m x / (N sd(m)),        sd(m)^2 = sum m^2 / N - (sum m / N)^2

is the change of every feature, without differences between institutions, for one standard deviation of the score.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.methods.logistic_federated.design import Design

MARGIN_SUMS = ("margin-sum", "squared-margin-sum", "feature-margin-sum")
"""Names on the wire; their shapes are those of the results of `margin_sums`."""


def margin_sums(design: Design, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the training subjects of an institution, float64.

    Args:
        design: the institution's subjects.
        weight: (P, d) of the models.

    Returns:
        Of the scores (P,), of their squares (P,), and of their products with the features (P, d).
    """
    rows = design.rows[torch.from_numpy(design.training)].double()
    scores = rows @ weight.double().T
    return scores.sum(dim=0), scores.square().sum(dim=0), (scores.T @ rows) * design.unit


def haufe_patterns(sums: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Patterns (P, d) from the sums of all institutions; 0 of a model without two classes to separate.

    Args:
        sums: those of `MARGIN_SUMS`; `training-subjects`, a number; `class-counts` (P,), how many have the class of
            each model. Where none or all have it, what is left of the score is the optimiser's last step.
    """
    count, positives = float(sums["training-subjects"]), sums["class-counts"]
    total, squares, products = (sums[name] for name in MARGIN_SUMS)
    deviation = np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0))
    learnt = (positives > 0) & (positives < count) & (deviation > 0)
    return np.where(learnt[:, None], products / (count * np.where(learnt, deviation, 1.0)[:, None]), 0.0)
