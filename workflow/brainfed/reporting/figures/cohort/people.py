"""Sites and ages of the subjects."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.figures.style import (
    HALF,
    INK,
    PATIENT,
    SEX_COLOURS,
    UNLABELLED,
    class_colours,
    horizontal_rows,
    new_figure,
)
from brainfed.reporting.people import site_table, used
from brainfed.reporting.rounding import rounded

JITTER_SEED = 0


def sites_figure(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """Analysed subjects by site, as bars of the classes and of subjects without a label."""
    counts = site_table(people, words)
    figure = new_figure(HALF, max(2.9, 0.95 + 0.22 * len(counts)))
    axes = figure.add_subplot()
    left = np.zeros(len(counts))
    rows = range(len(counts))
    colours = class_colours(words.count)
    parts = {**{words.short[code]: colours[code] for code in words.shown}, "unlabelled": UNLABELLED}
    shown = {column: colour for column, colour in parts.items() if column in counts}
    for column, colour in shown.items():
        values = counts[column].to_numpy(dtype=np.float64)
        axes.barh(rows, values, left=left, height=0.72 if len(counts) > 6 else 0.6, color=colour)
        for row, value, start in zip(rows, values, left, strict=True):
            if value >= 0.05 * counts[list(shown)].sum(axis=1).max():
                axes.text(
                    start + value / 2,
                    row,
                    rounded(value, 0),
                    ha="center",
                    va="center",
                    color="white" if colour == PATIENT else INK,
                    fontsize=7.5,
                )
        left += values
    horizontal_rows(axes, [str(site) for site in counts["site"]])
    axes.set_xlabel(f"analysed subjects (n = {int(left.sum())})")
    _key(axes, list(shown.items()))
    return figure


def _key(axes: Axes, items: list[tuple[str, str]]) -> None:
    """Coloured words above the axes in place of a legend."""
    for index, (text, colour) in enumerate(items):
        axes.annotate(
            text, (0, 1), (80 * index, 6), xycoords="axes fraction", textcoords="offset points",
            color=colour, fontweight="bold", va="bottom",
        )  # fmt: skip


def ages_figure(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """Age of the analysed subjects by class and sex: every subject a dot, quartiles as a box."""
    kept = used(people)
    if words.target == "sex":
        kept = kept.assign(sex=kept["diagnosis"].map(words.one))
    groups = [
        (
            sex if words.target == "sex" else f"{sex}\n{words.short[code]}",
            SEX_COLOURS[sex],
            kept.loc[(kept["diagnosis"] == code) & (kept["sex"] == sex)],
        )
        for code in words.shown
        for sex in ("male", "female")
        if words.target != "sex" or words.one[code] == sex
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
