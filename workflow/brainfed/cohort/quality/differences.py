"""Differences of quality measures between classes and between sites; association of site and diagnosis."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from brainfed.evaluation.holm import holm

FEWEST = 2
"""Fewest subjects of a group with a spread."""


@dataclass(frozen=True)
class GroupDifference:
    """Difference of a measure between patients and controls, from their means.

    `low` and `high` are the ends of the 95 % interval of patients minus controls, `p` is that of Welch's t-test (two
    sides), `effect` is Cohen's d.
    """

    patients: float
    controls: float
    low: float
    high: float
    p: float
    effect: float

    @property
    def significant(self) -> bool:
        """Whether p is below 5 %."""
        return self.p < 0.05


def group_difference(values: pd.Series, diagnosis: pd.Series) -> GroupDifference | None:
    """Compare patients (1) and controls (0); subjects without a diagnosis or a value take no part.

    Returns None if a group has fewer than two values, or nothing varies.
    """
    known = values.notna() & diagnosis.notna()
    first = values[known & (diagnosis == 1).fillna(False)].to_numpy(dtype=np.float64)
    second = values[known & (diagnosis == 0).fillna(False)].to_numpy(dtype=np.float64)
    if min(len(first), len(second)) < FEWEST or max(np.ptp(first), np.ptp(second)) == 0:
        return None
    test = stats.ttest_ind(first, second, equal_var=False)
    interval = test.confidence_interval()
    return GroupDifference(
        float(first.mean()), float(second.mean()), float(interval.low), float(interval.high), float(test.pvalue),
        cohen(first, second),
    )  # fmt: skip


def against_rest(diagnosis: pd.Series, code: int) -> pd.Series:
    """1 for the class `code`, 0 for every other class, missing without a diagnosis (missing or negative)."""
    return (diagnosis == code).astype("Int8").where((diagnosis >= 0).fillna(False))


@dataclass(frozen=True)
class SiteDifferences:
    """Differences of a measure between sites.

    Attributes:
        explained: eta squared, the share of the variance between sites.
        p: of the one-way analysis of variance.
        sites: site, subjects, mean, others (mean of all other sites), effect (Cohen's d against them), p_holm
            (Welch's t-test against them, Holm over sites); sites with two values or more, in ascending order.
    """

    explained: float
    p: float
    sites: pd.DataFrame

    def apart(self, effect: float) -> pd.DataFrame:
        """Sites that differ significantly from the others by `effect` standard deviations or more."""
        return self.sites[(self.sites["p_holm"] < 0.05) & (self.sites["effect"].abs() >= effect)]


def site_differences(values: pd.Series, site: pd.Series) -> SiteDifferences | None:
    """Compare the sites; None if fewer than two have two values, or nothing varies."""
    known = values.notna() & site.notna()
    measured, where = values[known].to_numpy(dtype=np.float64), site[known].to_numpy(dtype=object)
    names = [name for name in sorted(set(where)) if (where == name).sum() >= FEWEST]
    parts = [measured[where == name] for name in names]
    if len(names) < 2 or all(np.ptp(part) == 0 for part in parts):
        return None
    rows = []
    for name, part in zip(names, parts, strict=True):
        others = measured[where != name]
        p = float(stats.ttest_ind(part, others, equal_var=False).pvalue)
        rows.append((name, len(part), float(part.mean()), float(others.mean()), cohen(part, others), p))
    sites = pd.DataFrame(rows, columns=["site", "subjects", "mean", "others", "effect", "p_holm"])
    sites["p_holm"] = holm(sites["p_holm"].fillna(1.0).to_numpy())
    pooled = np.concatenate(parts)
    between = sum(len(part) * (part.mean() - pooled.mean()) ** 2 for part in parts)
    total = ((pooled - pooled.mean()) ** 2).sum()
    return SiteDifferences(float(between / total), float(stats.f_oneway(*parts).pvalue), sites)


@dataclass(frozen=True)
class ClassesBySite:
    """Distribution of the classes over sites.

    Attributes:
        v: Cramer's V of sites and classes: 0, equal shares of the classes at all sites; 1, the site decides.
        p: of the chi-square test.
        guessed: share of the subjects with the more frequent class of their site.
        chance: share of the more frequent class of the cohort.
        sites: number of sites.
        one_class: number of sites with one class only.
    """

    v: float
    p: float
    guessed: float
    chance: float
    sites: int
    one_class: int


def classes_by_site(diagnosis: pd.Series, site: pd.Series) -> ClassesBySite | None:
    """Count the classes by site; subjects without a diagnosis or site take no part.

    Returns None if there are fewer than two sites or one class.
    """
    known = (diagnosis >= 0).fillna(False) & site.notna()
    table = pd.crosstab(site[known], diagnosis[known]).to_numpy()
    if min(table.shape) < 2:
        return None
    test = stats.chi2_contingency(table, correction=False)
    total, freedom = int(table.sum()), min(table.shape) - 1
    return ClassesBySite(
        float(np.sqrt(test.statistic / (total * freedom))), float(test.pvalue), float(table.max(axis=1).sum() / total),
        float(table.sum(axis=0).max() / total), len(table), int(((table > 0).sum(axis=1) == 1).sum()),
    )  # fmt: skip


def cohen(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Cohen's d: difference of the means in pooled standard deviations; NaN if nothing varies."""
    freedom = len(first) + len(second) - 2
    pooled = ((len(first) - 1) * first.var(ddof=1) + (len(second) - 1) * second.var(ddof=1)) / freedom
    return float((first.mean() - second.mean()) / np.sqrt(pooled)) if pooled > 0 else float("nan")
