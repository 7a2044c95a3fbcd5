"""Patterns of federated logistic regression (Haufe et al. 2014, eq. 6), from one more sum over institutions.

The rows x of the training subjects have mean 0 over all institutions. Of the margins m = x'w + b an institution sends
the sums of m and m^2, and that of m x in the units of its own features. With the totals over N subjects

    A = sum m x / (N sd(m)),        sd(m)^2 = sum m^2 / N - (sum m / N)^2

is the change of every feature, without differences between institutions, for one standard deviation of the margin.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.methods.logistic_federated.design import Design

MARGIN_SUMS = ("margin-sum", "squared-margin-sum", "feature-margin-sum")
"""Names on the wire; their shapes are those of the results of `margin_sums`."""


def margin_sums(design: Design, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the training subjects of an institution, float64.

    Args:
        design: the institution's subjects.
        weight: (P, d) of the models.
        bias: (P,).

    Returns:
        Of the margins (P,), of their squares (P,), and of their products with the features (P, d).
    """
    rows = design.rows[torch.from_numpy(design.training)].double()
    margins = rows @ weight.double().T + bias.double()
    return margins.sum(dim=0), margins.square().sum(dim=0), (margins.T @ rows) * design.unit


def haufe_patterns(sums: Sequence[tuple[Tensor, Tensor, Tensor]], count: int) -> NDArray[np.float64]:
    """Patterns (P, d) from the sums of all institutions over `count` training subjects; 0 where no margin varies."""
    total, squares, products = (torch.stack(parts).sum(dim=0) for parts in zip(*sums, strict=True))
    variance = squares / count - (total / count).square()
    varying = variance > torch.finfo(variance.dtype).eps * squares / count
    deviation = variance.clamp(min=0).sqrt()
    return np.where(varying.cpu()[:, None], (products / (count * deviation.clamp(min=1e-300)[:, None])).cpu(), 0.0)
