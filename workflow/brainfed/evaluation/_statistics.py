"""Tests of the difference between two variants over runs.

The papers' test is Student's two-sample t-test over runs (FedNI Sec. IV-A). Runs share training subjects, so it is
over-confident. The second test is the corrected resampled t-test of Nadeau & Bengio (2003, Machine Learning 52, Sec.
3), paired by run, with Holm's correction over variants.
"""

import difflib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from brainfed.runtime import Float64, UserError


def holm(p: Float64) -> Float64:
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


CONFIDENCE = 0.95
TEST_COLUMNS = (
    "variant", "reference", "metric", "difference", "ci_low", "ci_high", "effect_size", "t_paper", "p_paper",
    "t_corrected", "p_corrected", "p_holm",
)  # fmt: skip


@dataclass(frozen=True)
class CorrectedTest:
    """Mean difference with its confidence interval, and the test that it is zero."""

    difference: float
    ci_low: float
    ci_high: float
    t: float
    p: float


def two_sample_t_test(first: Float64, second: Float64) -> tuple[float, float]:
    """Student's t of two independent samples and its two-sided p, as the papers use it; NaN below two values.

    Samples without any variance give t infinite, p 0 if they differ, else t 0, p 1.
    """
    if min(len(first), len(second)) < 2:
        return np.nan, np.nan
    if np.ptp(first) == 0 and np.ptp(second) == 0:
        return _without_variance(float(first[0] - second[0]))
    result = stats.ttest_ind_from_stats(
        first.mean(), first.std(ddof=1), len(first), second.mean(), second.std(ddof=1), len(second)
    )
    return float(result.statistic), float(result.pvalue)


def corrected_t_test(differences: Float64, test_train_ratio: float) -> CorrectedTest:
    """Nadeau & Bengio's corrected resampled t-test of paired differences (J,).

    t = mean / sqrt((1/J + n_test/n_train) variance) with J - 1 degrees of freedom; the interval is the 95 % one.
    `test_train_ratio` is n_test / n_train of a run, 1/4 for five folds. NaN below two differences; without variance t
    is 0 or infinite.
    """
    count = len(differences)
    mean = float(differences.mean()) if count else np.nan
    if count < 2:
        return CorrectedTest(mean, np.nan, np.nan, np.nan, np.nan)
    if np.ptp(differences) == 0:
        return CorrectedTest(mean, mean, mean, *_without_variance(mean))
    error = float(np.sqrt((1 / count + test_train_ratio) * differences.var(ddof=1)))
    reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, count - 1)) * error
    p = 2 * float(stats.t.sf(abs(mean) / error, count - 1))
    return CorrectedTest(mean, mean - reach, mean + reach, mean / error, p)


def paired_effect_size(differences: Float64) -> float:
    """Cohen's d_z: mean over standard deviation of the paired differences (J,)."""
    if len(differences) < 2:
        return np.nan
    mean = float(differences.mean())
    if np.ptp(differences) == 0:
        return 0.0 if mean == 0 else float(np.copysign(np.inf, mean))
    return mean / float(differences.std(ddof=1))


def _without_variance(difference: float) -> tuple[float, float]:
    return (0.0, 1.0) if difference == 0 else (float(np.copysign(np.inf, difference)), 0.0)


def compare(
    runs: pd.DataFrame, reference_variant: str, metric: str, scope: str, test_train_ratio: float
) -> pd.DataFrame:
    """Test every other variant against the reference in one metric and scope of a table of runs.

    Returns:
        `TEST_COLUMNS`, a row a variant in order of appearance. A run counts if both variants are
        defined. Holm's family is the variants of this table with a p.

    Raises:
        UserError: the reference has no run in this metric and scope.
    """
    chosen = runs.loc[(runs["metric"] == metric) & (runs["scope"] == scope)]
    table = _by_run(chosen)
    if reference_variant not in table.columns:
        near = difflib.get_close_matches(reference_variant, [str(name) for name in table.columns], n=1, cutoff=0)
        raise UserError(
            f"tests: the reference {reference_variant} has no runs in metric {metric} and scope {scope}"
            f"{f'; did you mean {near[0]}' if near else ''}; add it to the experiment."
        )
    rows = []
    for name in (name for name in chosen["variant"].unique() if name != reference_variant):
        values, baseline = table[[name, reference_variant]].dropna().to_numpy(dtype=np.float64).T
        test, effect = corrected_t_test(values - baseline, test_train_ratio), paired_effect_size(values - baseline)
        differing = (test.difference, test.ci_low, test.ci_high, effect)
        by_papers = two_sample_t_test(values, baseline)
        rows.append((str(name), reference_variant, metric, *differing, *by_papers, test.t, test.p))
    tests = pd.DataFrame(rows, columns=list(TEST_COLUMNS[:-1]))
    return tests.assign(p_holm=holm(tests["p_corrected"].to_numpy(dtype=np.float64)))


def paired_difference(
    runs: pd.DataFrame, variant: str, other: str, metric: str, scope: str, test_train_ratio: float
) -> CorrectedTest:
    """Test one variant minus another, paired by run, over the runs with both defined."""
    chosen = runs.loc[(runs["metric"] == metric) & (runs["scope"] == scope) & runs["variant"].isin([variant, other])]
    both = _by_run(chosen).reindex(columns=[variant, other]).dropna().to_numpy(dtype=np.float64)
    return corrected_t_test(both[:, 0] - both[:, 1], test_train_ratio)


def _by_run(values: pd.DataFrame) -> pd.DataFrame:
    """A row a run, a column a variant, of one metric and scope."""
    return values.pivot(index=["repeat", "fold"], columns="variant", values="value")


# The share of the gap between two variants that a third one closes, with an interval.
#
# The share is a ratio of two means over the same runs, so its interval is Fieller's (1954, J. R. Stat. Soc. B 16, 175),
# with the variances of Nadeau and Bengio's corrected test.


@dataclass(frozen=True)
class RecoveredShare:
    """Share of a gap with its 95 % interval: 0 is none, 1 the whole gap; NaN if the gap may be zero."""

    share: float
    low: float
    high: float


UNKNOWN = RecoveredShare(np.nan, np.nan, np.nan)


def recovered_share(method: Float64, lower: Float64, upper: Float64, test_train_ratio: float) -> RecoveredShare:
    """(method - lower) / (upper - lower) of the means of scores (J,), one a run, paired by run.

    It is NaN below two runs, and if the corrected interval of the gap contains 0: the share is then undefined.
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
