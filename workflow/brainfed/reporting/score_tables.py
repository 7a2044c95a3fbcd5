"""The results as tables of text: scores, tests against the reference, ours beside the paper's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.evaluation.metrics import METRICS
from brainfed.evaluation.scores import INSTITUTION, POOLED
from brainfed.reporting.intervals import SIGNIFICANT, signed
from brainfed.reporting.paper_numbers import FEDNI_TABLE_V, PAPER_METRICS, paper_cohort
from brainfed.reporting.printed import changed_settings
from brainfed.reporting.variants import ShownVariant, by_family

RANKED = ("accuracy", "balanced_accuracy", "auc")
"""Metrics in which the best stands out; the others are highest for who calls everybody, or nobody, a patient."""
SCOPE_TITLES = {INSTITUTION: "mean over institutions", POOLED: "all test subjects pooled"}


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Attributes:
        text: what is printed.
        value: what a column is sorted by.
        note: a second, smaller line.
        marked: whether it stands out.
    """

    text: str
    value: float = np.nan
    note: str = ""
    marked: bool = False


@dataclass(frozen=True)
class Row:
    """One variant of a table."""

    variant: ShownVariant
    cells: tuple[Cell, ...]


def score_rows(summary: pd.DataFrame, variants: Sequence[ShownVariant], scope: str) -> list[Row]:
    """Mean of every metric, below it the deviation over runs and, where repeated, over repeat means.

    Args:
        summary: variant, scope, metric, mean, sd, sd_of_repeats.
        variants: all variants of the experiment.
        scope: `institution` or `pooled`.
    """
    table = summary[summary["scope"] == scope]
    best = table.groupby("metric")["mean"].max().to_dict()
    spreads = [column for column in ("sd", "sd_of_repeats") if table[column].notna().any()]
    held = table.set_index(["variant", "metric"]).to_dict("index")
    rows = []
    for variant in by_family(variants):
        cells = []
        for metric in METRICS:
            found = held[variant.name, metric]
            mean = float(found["mean"])
            spread = " \u00b7 ".join(_short(float(found[column])) for column in spreads)
            cells.append(Cell(_three(mean), mean, spread, metric in RANKED and bool(mean == best[metric])))
        rows.append(Row(variant, tuple(cells)))
    return rows


def undefined_count(summary: pd.DataFrame) -> int:
    """AUCs of single institutions that have no definition because a test fold held one class."""
    rows = summary[(summary["metric"] == "auc") & (summary["scope"] == INSTITUTION)]
    return int(rows["undefined"].max()) if len(rows) else 0


def difference_rows(tests: pd.DataFrame, variants: Sequence[ShownVariant], metric: str, scope: str) -> list[Row]:
    """Difference with its interval, effect size, the paper's p, corrected p, Holm's p."""
    held = tests[(tests["metric"] == metric) & (tests["scope"] == scope)].set_index("variant").to_dict("index")
    rows = []
    for variant in by_family([variant for variant in variants if variant.name in held]):
        test = held[variant.name]
        difference, low, high = (float(test[name]) for name in ("difference", "ci_low", "ci_high"))
        effect = float(test["effect_size"])
        interval = f"[{_signed(low)}, {_signed(high)}]" if np.isfinite(low) else ""
        rows.append(
            Row(
                variant,
                (
                    Cell(_signed(difference), difference, interval),
                    Cell(signed(effect, 2) if np.isfinite(effect) else "\u2013", effect),
                    *(_p_cell(float(test[name])) for name in ("p_paper", "p_corrected", "p_holm")),
                ),
            )
        )
    return rows


def significant_counts(tests: pd.DataFrame, metric: str, scope: str) -> tuple[int, int, int]:
    """How many differences the paper's test calls significant, how many survive the corrections, of how many."""
    table = tests[(tests["metric"] == metric) & (tests["scope"] == scope)]
    return int((table["p_paper"] < SIGNIFICANT).sum()), int((table["p_holm"] < SIGNIFICANT).sum()), len(table)


def paper_rows(summary: pd.DataFrame, variants: Sequence[ShownVariant], cohort: str) -> list[Row]:
    """Ours and the paper's numbers side by side, for every variant that is a method of Table V in all its settings."""
    printed = FEDNI_TABLE_V[paper_cohort(cohort)[0]]
    ours = summary[summary["scope"] == INSTITUTION].set_index(["variant", "metric"]).to_dict("index")
    shipped = [variant for variant in variants if variant.method in printed and not changed_settings(variant)]
    rows = []
    for variant in by_family(shipped):
        cells: list[Cell] = []
        for metric, (mean, sd) in zip(PAPER_METRICS, printed[variant.method], strict=True):
            found = ours[variant.name, metric]
            spread = float(found["sd_of_repeats"])
            note = f"({_short(spread)})" if np.isfinite(spread) else ""
            cells.append(Cell(_three(float(found["mean"])), float(found["mean"]), note))
            cells.append(Cell(_three(mean), mean, f"({_short(sd)})"))
        rows.append(Row(variant, tuple(cells)))
    return rows


def _three(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else "\u2013"


def _short(value: float) -> str:
    """Three decimals without the leading zero."""
    return f"{value:.3f}".removeprefix("0") if np.isfinite(value) else "\u2013"


def _signed(value: float) -> str:
    return signed(value) if np.isfinite(value) else "\u2013"


def _p_cell(p: float) -> Cell:
    if not np.isfinite(p):
        return Cell("\u2013")
    return Cell("< .001" if p < 0.001 else _short(p), p, marked=p < SIGNIFICANT)
