"""A mean over parents and its standard error."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """The mean of one value a parent, with its standard error.

    Parents share true neighbours, so the error is slightly too small.

    Attributes:
        mean: None without parents.
        error: standard deviation over parents / sqrt(parents); None below two parents.
        parents: number of values.
    """

    mean: float | None
    error: float | None
    parents: int


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Mean and standard error of finite values (parents,)."""
    count = len(values)
    mean = float(values.mean()) if count else None
    error = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else None
    return Estimate(mean, error, count)


def ratio(numerator: float, denominator: float) -> float | None:
    """The quotient; None where the denominator is 0."""
    return float(numerator / denominator) if denominator else None
