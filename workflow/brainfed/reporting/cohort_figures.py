"""Who the subjects are: from table to analysis, sites, ages."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from brainfed.reporting.people import attrition, site_table, used
from brainfed.reporting.style import (
    DIAGNOSIS_COLOURS,
    DIAGNOSIS_TITLES,
    FAINT,
    HALF,
    INK,
    RULE,
    SEX_COLOURS,
    WIDE,
    bare,
    horizontal_rows,
    new_figure,
)

JITTER_SEED = 0
LEFT_OUT = "#b45309"
KEPT = "#0f766e"


def flow_figure(people: pd.DataFrame) -> Figure:
    """Rows of the phenotype table, minus those left out with every reason, equal the analysed subjects."""
    counted = attrition(people)
    kept = used(people)
    patients = int((kept["diagnosis"] == 1).sum())
    lines = max(len(counted.left_out), 3)
    figure = new_figure(WIDE, 0.62 + 0.17 * lines)
    axes = figure.add_subplot()
    bare(axes)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    reasons = "\n".join(f"{count}  {why}" for why, count in counted.left_out) or "nobody"
    without_series = counted.listed - int(people["has_series"].sum())
    _box(
        axes,
        0.0,
        0.25,
        counted.listed,
        FAINT,
        f"in the phenotype table\n{counted.listed - without_series} with a series",
    )
    _box(axes, 0.3, 0.42, counted.listed - counted.included, LEFT_OUT, f"{reasons}", "left out")
    _box(axes, 0.77, 0.23, counted.included, KEPT, f"{patients} patients\n{len(kept) - patients} controls", "analysed")
    for place, sign in ((0.275, "\u2212"), (0.745, "=")):
        axes.text(place, 0.5, sign, ha="center", va="center", fontsize=15, color=FAINT)
    return figure


def _box(axes: Axes, left: float, width: float, number: int, colour: str, text: str, unit: str = "") -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left + 0.004, 0.03), width - 0.008, 0.94, boxstyle="round,pad=0,rounding_size=0.012",
            facecolor="white", edgecolor=RULE, linewidth=1, mutation_aspect=6,
        )
    )  # fmt: skip
    axes.annotate(
        str(number), (left, 1), (11, -9), xycoords="data", textcoords="offset points", va="top",
        fontsize=17, fontweight="bold", color=colour,
    )  # fmt: skip
    axes.annotate(
        unit, (left, 1), (19 + 12 * len(str(number)), -15), xycoords="data", textcoords="offset points", va="top",
        fontsize=8.5, fontweight="bold", color=colour,
    )  # fmt: skip
    axes.annotate(text, (left, 1), (11, -33), xycoords="data", textcoords="offset points", va="top", linespacing=1.35)


def sites_figure(people: pd.DataFrame) -> Figure:
    """Analysed subjects by site, patients and controls end to end."""
    counts = site_table(people)
    figure = new_figure(HALF, max(2.9, 0.95 + 0.22 * len(counts)))
    axes = figure.add_subplot()
    left = np.zeros(len(counts))
    rows = range(len(counts))
    for code, column in ((1, "patients"), (0, "controls")):
        values = counts[column].to_numpy(dtype=np.float64)
        axes.barh(rows, values, left=left, height=0.72 if len(counts) > 6 else 0.6, color=DIAGNOSIS_COLOURS[code])
        for row, value, start in zip(rows, values, left, strict=True):
            if value >= 0.05 * counts[["patients", "controls"]].sum(axis=1).max():
                axes.text(
                    start + value / 2,
                    row,
                    f"{value:.0f}",
                    ha="center",
                    va="center",
                    color="white" if code else INK,
                    fontsize=7.5,
                )
        left += values
    horizontal_rows(axes, [str(site) for site in counts["site"]])
    axes.set_xlabel(f"analysed subjects (n = {int(left.sum())})")
    _key(axes, [(DIAGNOSIS_TITLES[code], DIAGNOSIS_COLOURS[code]) for code in (1, 0)])
    return figure


def _key(axes: Axes, items: list[tuple[str, str]]) -> None:
    """Coloured words above the axes in place of a legend."""
    for index, (text, colour) in enumerate(items):
        axes.annotate(
            text, (0, 1), (80 * index, 6), xycoords="axes fraction", textcoords="offset points",
            color=colour, fontweight="bold", va="bottom",
        )  # fmt: skip


def ages_figure(people: pd.DataFrame) -> Figure:
    """Age of the analysed subjects by diagnosis and sex: every subject a dot, quartiles as a box."""
    kept = used(people)
    groups = [
        (
            f"{sex}\n{DIAGNOSIS_TITLES[code]}",
            SEX_COLOURS[sex],
            kept.loc[(kept["diagnosis"] == code) & (kept["sex"] == sex)],
        )
        for code in (1, 0)
        for sex in ("male", "female")
    ]
    figure = new_figure(HALF, 2.9)
    axes = figure.add_subplot()
    for place, (_, colour, group) in enumerate(groups):
        strip(axes, place, group["age"].dropna().to_numpy(dtype=np.float64), colour)
    axes.set_xticks(range(len(groups)), [f"{title}\nn = {len(group)}" for title, _, group in groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("age (years)")
    axes.grid(axis="y")
    unknown = int(kept[["age", "sex"]].isna().any(axis=1).sum())
    if unknown:
        axes.set_title(f"{unknown} without age or sex not shown", fontweight="normal", fontsize=8)
    return figure


def strip(axes: Axes, place: float, values: np.ndarray[tuple[int], np.dtype[np.float64]], colour: str) -> None:
    """Every value a dot beside a box of its quartiles, at one place of the x axis."""
    if not len(values):
        return
    spread = np.random.default_rng(JITTER_SEED).uniform(-0.3, 0.02, len(values))
    axes.scatter(place + spread, values, s=7, color=colour, alpha=0.45, linewidths=0, rasterized=len(values) > 2000)
    axes.boxplot(
        values, positions=[place + 0.2], widths=0.16, showfliers=False, manage_ticks=False,
        medianprops={"color": INK, "linewidth": 1.4}, boxprops={"color": INK, "linewidth": 0.8},
        whiskerprops={"color": INK, "linewidth": 0.8}, capprops={"color": INK, "linewidth": 0.8},
    )  # fmt: skip
