"""Holm's step-down correction for several tests."""

import numpy as np
from numpy.typing import NDArray


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Adjusted p of each test (m,); a NaN stays NaN and does not belong to the family.

    The numbers are those of statsmodels' `multipletests`, which collects garbage at each call (decision 58).

    Source: Holm 1979, Scandinavian Journal of Statistics 6:65-70.
    """
    adjusted = np.full(len(p), np.nan)
    family = np.flatnonzero(np.isfinite(p))
    ascending = family[np.argsort(p[family], kind="stable")]
    steps = p[ascending] * np.arange(len(ascending), 0, -1)
    adjusted[ascending] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
