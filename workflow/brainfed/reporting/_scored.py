"""The scores of an experiment for its figures: means with intervals, differences with tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation import (
    INSTITUTION,
    compare,
    compare_with_reference,
    corrected_t_test,
    paired_difference,
    ratio_of_splits,
    test_train_ratio,
)
from brainfed.reporting._outline import ExperimentOutline
from brainfed.reporting._rounding import EXACT, SIGNIFICANT, counted, digits_of, rounded, signed
from brainfed.reporting._variants import ShownVariant
from brainfed.runtime import read_table

# Runs share training subjects, so their spread understates the doubt; Nadeau & Bengio's correction widens the intervals
# (see `evaluation._statistics`).

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
    def bounded(self) -> bool:
        """Whether a sentence gives the interval."""
        return self.known and not self.few

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
        return counted(self.runs, "run")

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
        if not self.bounded:
            return mean
        return f"{mean} (in all {self.counted})" if self.constant else f"{mean} {bounds}"

    def in_words(self) -> str:
        """`0.73 (95 % interval 0.69 to 0.77)`."""
        if not self.bounded:
            return f"{self.text} ({self.counted}, too few for an interval)"
        if self.constant:
            return str(self)
        return f"{self.text} (95 % interval {rounded(self.low, self.digits)} to {rounded(self.high, self.digits)})"


def values(runs: pd.DataFrame, variant: str, metric: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The defined values of one variant and metric, mean over institutions, one a run."""
    chosen = (runs["variant"] == variant) & (runs["metric"] == metric) & (runs["scope"] == INSTITUTION)
    return runs.loc[chosen, "value"].dropna().to_numpy(dtype=np.float64)


def interval(runs: pd.DataFrame, variant: str, metric: str, ratio: float) -> Interval:
    """Mean over runs with the corrected interval, kept inside [0, 1]; `ratio` is n_test / n_train of a run."""
    return interval_of(values(runs, variant, metric), ratio)


def interval_of(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], ratio: float) -> Interval:
    """Mean of these values, one a run, with the corrected interval, kept inside [0, 1]."""
    test = corrected_t_test(numbers, ratio)
    return Interval(
        test.difference,
        max(test.ci_low, 0.0) if np.isfinite(test.ci_low) else np.nan,
        min(test.ci_high, 1.0) if np.isfinite(test.ci_high) else np.nan,
        len(numbers),
    )


def best(runs: pd.DataFrame, variants: Sequence[str], metric: str) -> str | None:
    """The variant with the highest mean; None if no variant has a defined value."""
    means = {variant: values(runs, variant, metric) for variant in variants}
    scored = {variant: float(own.mean()) for variant, own in means.items() if len(own)}
    return max(scored, key=lambda variant: scored[variant]) if scored else None


NOWHERE = np.zeros(0, dtype=np.intp)
"""Rows of a variant without a defined value."""


@dataclass(frozen=True)
class Scored:
    """All runs of an experiment.

    Attributes:
        runs: variant, repeat, fold, scope, metric, value.
        ratio: n_test / n_train of a run.
        pooled: whether scores of pooled test subjects mean anything: a class is the same in all institutions.
    """

    runs: pd.DataFrame
    ratio: float
    pooled: bool = True

    def interval(self, variant: str, metric: str, scope: str = INSTITUTION) -> Interval:
        """Mean over runs with its corrected 95 % interval; by default of the means over institutions."""
        return interval_of(self._of(variant, metric, scope)["value"].to_numpy(dtype=np.float64), self.ratio)

    def difference(self, variant: str, other: str, metric: str, scope: str = INSTITUTION) -> Interval:
        """One variant minus another, paired by run, with its corrected 95 % interval."""
        test = paired_difference(self.runs, variant, other, metric, scope, self.ratio)
        return Interval(test.difference, test.ci_low, test.ci_high, len(self._pairs(variant, other, metric, scope)))

    def beside(self, variant: str, other: str, metric: str) -> Interval:
        """A variant's mean over the runs in which the other one is defined too."""
        runs = self.runs.merge(self._pairs(variant, other, metric), on=["repeat", "fold"])
        return interval(runs, variant, metric, self.ratio)

    def differences(self, reference: str, others: Sequence[str], metric: str) -> dict[str, tuple[Interval, float]]:
        """Every other variant minus the reference, paired by run, and its Holm-corrected p (NaN: too few runs)."""
        family = self.runs[self.runs["variant"].isin([reference, *others])]
        tests = compare(family, reference, metric, INSTITUTION, self.ratio).set_index("variant")
        differences = {}
        for name, *numbers in tests[["difference", "ci_low", "ci_high", "p_holm"]].itertuples():
            mean, low, high, p = map(float, numbers)
            differences[str(name)] = Interval(mean, low, high, len(self._pairs(str(name), reference, metric))), p
        return differences

    def has_values(self, variant: str, metric: str) -> bool:
        """Whether a variant has a defined value, mean over institutions."""
        return (variant, metric, INSTITUTION) in self._places

    def _pairs(self, variant: str, other: str, metric: str, scope: str = INSTITUTION) -> pd.DataFrame:
        """`repeat` and `fold` of the runs in which both are defined."""
        first, second = (self._of(name, metric, scope)[["repeat", "fold"]] for name in (variant, other))
        return first.merge(second, on=["repeat", "fold"])

    def _of(self, variant: str, metric: str, scope: str) -> pd.DataFrame:
        """The runs with a defined value."""
        return self.runs.iloc[self._places.get((variant, metric, scope), NOWHERE)]

    @cached_property
    def _places(self) -> Mapping[tuple[str, str, str], NDArray[np.intp]]:
        """(variant, metric, scope) -> rows of `runs` with a defined value; a page asks for a thousand of them."""
        defined = np.flatnonzero(self.runs["value"].notna())
        keys = self.runs.iloc[defined].groupby(["variant", "metric", "scope"], sort=False, observed=True)
        groups = cast("dict[tuple[str, str, str], NDArray[np.intp]]", keys.indices)
        return {key: defined[places] for key, places in groups.items()}


def read_scored(outline: ExperimentOutline) -> Scored:
    """Read the runs of an experiment and the size of its test folds."""
    people = outline.participants
    ratio = ratio_of_splits(outline.splits, people) if people else test_train_ratio(read_splits(outline))
    return Scored(pd.read_csv(outline.tables["runs"], sep="\t"), ratio, outline.pooled)


def read_splits(outline: ExperimentOutline) -> pd.DataFrame:
    """subject, institution, fold, repeat of the tested subjects of every repeat; `variant` is empty."""
    return pd.concat(
        [
            read_table(path, ["subject", "institution", "fold"]).query("fold >= 0").assign(variant="", repeat=repeat)
            for repeat, path in enumerate(outline.splits)
        ]
    )


def significant(p: float) -> bool:
    """Whether a corrected p is significant; False for too few runs."""
    return bool(np.isfinite(p)) and p < SIGNIFICANT


# One p for a difference on a whole page, in all sentences, stars and tables.
#
# Holm's correction depends on the family of comparisons. With two families, one difference could be significant in one
# place of a page and not in another. A difference from the experiment's reference has the p of the test tables, which
# count every method in every metric and scope that is tested: one family an experiment. Any other has the p of the
# comparisons with a method that stands beside others on every page (those, and its own variants), or of all federated
# methods with one that is not; the larger p if it is among both. A sentence with such a p states its family.


@dataclass(frozen=True)
class PageTests:
    """The comparisons of one experiment's page; the reference is that of the test tables and of its figure's stars."""

    scored: Scored
    variants: Sequence[ShownVariant]
    reference: str
    _known: dict[tuple[str, ...], dict[str, tuple[Interval, float]]] = field(default_factory=dict, repr=False)

    def differences(self, centre: str, others: Sequence[str], metric: str) -> dict[str, tuple[Interval, float]]:
        """Every other variant minus `centre`, paired by run, and its p on this page (NaN: too few runs)."""
        names = [name for name in dict.fromkeys(others) if name != centre]
        compared = self._compared(centre, names, metric)
        return {name: (difference, self._p(centre, name, names, metric)) for name, (difference, _) in compared.items()}

    def counted(self, centre: str, others: Sequence[str], metric: str) -> str:
        """The family of Holm's correction: `over all 60 comparisons with FedGCN in the tests below`; empty over one."""
        title, table = self._variant(centre).title, len(self._table.dropna())
        if centre == self.reference:
            all_tests = f"over all {table} comparisons with {title} in the tests below, methods, metrics and scopes"
            return all_tests if table > 1 else ""
        count = len(self._together(centre, others, metric))
        said = f"over the {count} comparisons with {title} on this page, metric by metric" if count > 1 else ""
        if self.reference not in others or table == 1:
            return said
        family = f"over the {table} of the tests below"
        return f"{said}, against {self._variant(self.reference).title} {family}" if said else family

    def _p(self, centre: str, other: str, others: Sequence[str], metric: str) -> float:
        if not self.scored.has_values(other, metric):
            return float("nan")
        for variant, beside in ((centre, other), (other, centre)):
            if variant == self.reference:
                return float(self._table[beside, metric, INSTITUTION])
        p_values = []
        for variant, beside, asked in ((centre, other, others), (other, centre, [])):
            together = self._together(variant, asked, metric)
            if beside in together:
                p_values.append(self._compared(variant, together, metric)[beside][1])
        return float(np.max(p_values))

    @cached_property
    def _table(self) -> "pd.Series[float]":
        """(variant, metric, scope) -> p of the test tables."""
        scored = self.scored
        tests = compare_with_reference(scored.runs, self.reference, scored.ratio, pooled=scored.pooled)
        return tests.set_index(["variant", "metric", "scope"])["p_holm"]

    def _compared(self, centre: str, others: Sequence[str], metric: str) -> dict[str, tuple[Interval, float]]:
        """The families of comparisons, computed once."""
        key = (metric, centre, *others)
        if key not in self._known:
            self._known[key] = self.scored.differences(centre, others, metric)
        return self._known[key]

    def _together(self, centre: str, asked: Sequence[str], metric: str) -> list[str]:
        """All comparisons of the page with `centre`, whatever the call asks for."""
        own, always = self._variant(centre), set[str]()
        if own.beside:
            always = {*own.beside, *(variant.name for variant in self.variants if variant.method == own.method)}
        elif own.family != "federated":
            always = {variant.name for variant in self.variants if variant.family == "federated"}
        others = [variant.name for variant in self.variants if variant.name != centre]
        return [name for name in others if (name in always or name in asked) and self.scored.has_values(name, metric)]

    def _variant(self, name: str) -> ShownVariant:
        return next(variant for variant in self.variants if variant.name == name)
