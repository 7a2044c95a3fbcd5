"""The scores of an experiment for its figures: means with intervals, differences with tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation.experiment import ratio_of_splits, test_train_ratio
from brainfed.evaluation.scores import INSTITUTION
from brainfed.evaluation.statistics import compare, paired_difference
from brainfed.reporting.intervals import Interval, interval, interval_of
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import SIGNIFICANT
from brainfed.runtime.artefacts import read_table

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
        rows = compare(family, reference, metric, INSTITUTION, self.ratio).to_dict("records")
        return {
            str(row["variant"]): (
                Interval(
                    float(row["difference"]), float(row["ci_low"]), float(row["ci_high"]),
                    len(self._pairs(str(row["variant"]), reference, metric)),
                ),
                float(row["p_holm"]),
            )
            for row in rows
        }  # fmt: skip

    def _pairs(self, variant: str, other: str, metric: str, scope: str = INSTITUTION) -> pd.DataFrame:
        """`repeat` and `fold` of the runs in which both are defined."""
        one, two = (self._of(name, metric, scope)[["repeat", "fold"]] for name in (variant, other))
        return one.merge(two, on=["repeat", "fold"])

    def _of(self, variant: str, metric: str, scope: str) -> pd.DataFrame:
        """The runs with a defined value."""
        return self.runs.iloc[self._places.get((variant, metric, scope), NOWHERE)]

    @cached_property
    def _places(self) -> Mapping[tuple[str, str, str], NDArray[np.intp]]:
        """(variant, metric, scope) -> rows of `runs` with a defined value; a page asks for a thousand of them."""
        defined = np.flatnonzero(self.runs["value"].notna())
        keys = self.runs.iloc[defined].groupby(["variant", "metric", "scope"], sort=False, observed=True)
        found = cast("dict[tuple[str, str, str], NDArray[np.intp]]", keys.indices)
        return {key: defined[places] for key, places in found.items()}


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
