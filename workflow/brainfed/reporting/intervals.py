"""The mean of a score over runs with the interval that cross-validation deserves.

Runs share training subjects, so their spread understates the doubt; Nadeau & Bengio's correction
widens it (see `evaluation.statistics`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import corrected_t_test

SIGNIFICANT = 0.05
"""A corrected p below it holds."""


@dataclass(frozen=True)
class Interval:
    """A mean with its corrected 95 % interval; NaN bounds below two runs."""

    mean: float
    low: float
    high: float
    runs: int

    @property
    def negated(self) -> "Interval":
        """Of the difference taken the other way round."""
        return Interval(-self.mean, -self.high, -self.low, self.runs)

    def __str__(self) -> str:
        if not np.isfinite(self.low):
            return f"{self.mean:.3f}"
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"

    def in_words(self) -> str:
        """`0.731 (95 % interval 0.702 to 0.760)`."""
        if not np.isfinite(self.low):
            return f"{self.mean:.3f} (one run, no interval)"
        return f"{self.mean:.3f} (95 % interval {self.low:.3f} to {self.high:.3f})"


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
    found = values(runs, variant, metric, scope)
    test = corrected_t_test(found, ratio)
    return Interval(
        test.difference,
        max(test.ci_low, 0.0) if np.isfinite(test.ci_low) else np.nan,
        min(test.ci_high, 1.0) if np.isfinite(test.ci_high) else np.nan,
        len(found),
    )


def best(runs: pd.DataFrame, variants: Sequence[str], metric: str, scope: str = INSTITUTION) -> str | None:
    """The variant with the highest mean; None where no variant has a defined value."""
    means = {variant: values(runs, variant, metric, scope) for variant in variants}
    scored = {variant: float(found.mean()) for variant, found in means.items() if len(found)}
    return max(scored, key=lambda variant: scored[variant]) if scored else None


def signed(value: float, digits: int = 3) -> str:
    """With its sign and a true minus; what rounds to zero has no sign."""
    rounded = round(value, digits)
    return f"{rounded:+.{digits}f}".replace("-", "\u2212") if rounded else f"{0:.{digits}f}"
