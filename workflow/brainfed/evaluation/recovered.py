"""The share of the gap between two variants that a third one closes, with an interval.

The share is a ratio of two means over the same runs, so its interval is Fieller's (1954, J. R. Stat. Soc. B 16, 175),
with the variances of Nadeau and Bengio's corrected test (see `evaluation.statistics`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from brainfed.evaluation.statistics import CONFIDENCE

FloatVector = NDArray[np.float64]


@dataclass(frozen=True)
class RecoveredShare:
    """Share of a gap with its 95 % interval: 0 is none, 1 the whole gap; NaN if the gap may be zero."""

    share: float
    low: float
    high: float


UNKNOWN = RecoveredShare(np.nan, np.nan, np.nan)


def recovered_share(
    method: FloatVector, lower: FloatVector, upper: FloatVector, test_train_ratio: float
) -> RecoveredShare:
    """(method - lower) / (upper - lower) of the means, paired by run.

    It is NaN below two runs, and if the corrected interval of the gap contains 0: the share is then undefined.

    Args:
        method: (J,) scores of the judged variant, one a run.
        lower: (J,) scores of the lower end of the gap.
        upper: (J,) scores of the upper end.
        test_train_ratio: n_test / n_train of a run: 1/4 for five folds.
    """
    gained, gap = method - lower, upper - lower
    if len(gap) < 2:
        return UNKNOWN
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(gap) - 1))
    spread = (1 / len(gap) + test_train_ratio) * np.cov(gained, gap, ddof=1)
    mean = float(gap.mean())
    tolerance = float(quantile**2 * spread[1, 1])
    if mean**2 <= tolerance:
        return UNKNOWN
    share = float(gained.mean()) / mean
    # The bounds are the roots of (gained - r gap)^2 = quantile^2 variance(gained - r gap).
    square = mean**2 - tolerance
    middle = (share * mean**2 - quantile**2 * float(spread[0, 1])) / square
    constant = ((share * mean) ** 2 - quantile**2 * float(spread[0, 0])) / square
    reach = float(np.sqrt(max(middle**2 - constant, 0.0)))
    return RecoveredShare(share, middle - reach, middle + reach)
