"""Patterns of federated logistic regression (Haufe et al. 2014, eq. 6), from one more sum over institutions.

The rows x of the training subjects have mean 0 over all institutions. Of the scores m = x'w an institution sends the
sums of m and m^2, and that of m x in the units of its own features. With the totals over N subjects

    A = sum m x / (N sd(m)),        sd(m)^2 = sum m^2 / N - (sum m / N)^2

is the change of every feature, without differences between institutions, for one standard deviation of the score.
"""

from collections.abc import Sequence

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


def haufe_patterns(
    sums: Sequence[tuple[Tensor, Tensor, Tensor]], count: int, positives: Sequence[int]
) -> NDArray[np.float64]:
    """Patterns (P, d) from the sums of all institutions; 0 of a model without two classes to separate.

    Args:
        sums: of every institution with training subjects.
        count: number of training subjects.
        positives: (P,) how many of them have the class of each model. Where none or all have it, what is left of the
            score is the optimiser's last step.
    """
    total, squares, products = (torch.stack(parts).sum(dim=0).cpu().numpy() for parts in zip(*sums, strict=True))
    deviation = np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0))
    learnt = (np.array(positives) > 0) & (np.array(positives) < count) & (deviation > 0)
    return np.where(learnt[:, None], products / (count * np.where(learnt, deviation, 1.0)[:, None]), 0.0)
