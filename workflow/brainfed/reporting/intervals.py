"""The mean of a score over runs with its interval under cross-validation.

Runs share training subjects, so their spread understates the doubt; Nadeau & Bengio's correction
widens it (see `evaluation.statistics`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import corrected_t_test
from brainfed.reporting.rounding import EXACT, digits_of, rounded, signed

FEWEST = 5
"""Smallest number of runs for an interval in a sentence: the spread of fewer is hardly known."""


@dataclass(frozen=True)
class Interval:
    """A mean with its corrected 95 % interval; NaN bounds below two runs."""

    mean: float
    low: float
    high: float
    runs: int

    @property
    def negated(self) -> "Interval":
        """The interval of the negated difference."""
        return Interval(-self.mean, -self.high, -self.low, self.runs)

    @property
    def known(self) -> bool:
        """Whether there are enough runs for a number."""
        return bool(np.isfinite(self.low))

    @property
    def few(self) -> bool:
        """Whether the runs are too few for an interval in a sentence."""
        return self.runs < FEWEST

    @property
    def constant(self) -> bool:
        """Whether all runs have one value: without spread the interval has no width, and no certainty either."""
        return self.known and round(self.high - self.low, EXACT) == 0

    @property
    def nothing(self) -> bool:
        """Whether a difference is zero in every run."""
        return self.constant and not round(self.mean, EXACT)

    @property
    def counted(self) -> str:
        """`1 run`, `10 runs`."""
        return f"{self.runs} run{'' if self.runs == 1 else 's'}"

    @property
    def digits(self) -> int:
        """Number of decimals for its width."""
        return digits_of(self.low, self.high)

    @property
    def text(self) -> str:
        """The mean: `0.73`, or `0.731` for a narrow interval."""
        return rounded(self.mean, self.digits)

    def __str__(self) -> str:
        return self._beside(self.text, f"[{rounded(self.low, self.digits)}, {rounded(self.high, self.digits)}]")

    def as_difference(self) -> str:
        """`+0.02 [−0.06, +0.09]`; `+0.02` from few runs, `+0.02 (in all 10 runs)` if they are equal."""
        return self._beside(signed(self.mean, self.digits), self.bounds)

    @property
    def bounds(self) -> str:
        """`[−0.06, +0.09]`, whatever the number of runs."""
        return f"[{signed(self.low, self.digits)}, {signed(self.high, self.digits)}]"

    def _beside(self, mean: str, bounds: str) -> str:
        if self.few or not self.known:
            return mean
        return f"{mean} (in all {self.counted})" if self.constant else f"{mean} {bounds}"

    def in_words(self) -> str:
        """`0.73 (95 % interval 0.69 to 0.77)`."""
        if self.few or not self.known:
            return f"{self.text} ({self.counted}, too few for an interval)"
        if self.constant:
            return str(self)
        return f"{self.text} (95 % interval {rounded(self.low, self.digits)} to {rounded(self.high, self.digits)})"


def values(
    runs: pd.DataFrame, variant: str, metric: str, scope: str = INSTITUTION
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The defined values of one variant, metric and scope, one a run."""
    chosen = (runs["variant"] == variant) & (runs["metric"] == metric) & (runs["scope"] == scope)
    return runs.loc[chosen, "value"].dropna().to_numpy(dtype=np.float64)


def interval(runs: pd.DataFrame, variant: str, metric: str, ratio: float, scope: str = INSTITUTION) -> Interval:
    """Mean over runs with the corrected interval, kept inside [0, 1].

    Args:
        runs: variant, repeat, fold, scope, metric, value.
        variant: one variant.
        metric: one metric.
        ratio: n_test / n_train of a run.
        scope: one scope.
    """
    return interval_of(values(runs, variant, metric, scope), ratio)


def interval_of(found: np.ndarray[tuple[int], np.dtype[np.float64]], ratio: float) -> Interval:
    """Mean of these values, one a run, with the corrected interval, kept inside [0, 1]."""
    test = corrected_t_test(found, ratio)
    return Interval(
        test.difference,
        max(test.ci_low, 0.0) if np.isfinite(test.ci_low) else np.nan,
        min(test.ci_high, 1.0) if np.isfinite(test.ci_high) else np.nan,
        len(found),
    )


def best(runs: pd.DataFrame, variants: Sequence[str], metric: str, scope: str = INSTITUTION) -> str | None:
    """The variant with the highest mean; None if no variant has a defined value."""
    means = {variant: values(runs, variant, metric, scope) for variant in variants}
    scored = {variant: float(found.mean()) for variant, found in means.items() if len(found)}
    return max(scored, key=lambda variant: scored[variant]) if scored else None
