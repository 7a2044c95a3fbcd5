"""Motion: between patients and controls, between sites, and in the connectivity itself (QC-FC)."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.figures.cohort.people import strip
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    WIDE,
    class_colours,
    horizontal_rows,
    new_figure,
    note_figure,
    titled,
)
from brainfed.reporting.people import used

ACCENT = "#44559a"


def motion_figure(
    people: pd.DataFrame, connections: pd.DataFrame, limit: float, words: ClassWords = DIAGNOSIS_WORDS
) -> Figure:
    """Mean framewise displacement by diagnosis and by site, and its correlation with every connection.

    Args:
        people: the participants with their measures.
        connections: table of `imaging.quality.qc_fc`; empty if nothing could be correlated.
        limit: mean displacement in mm that marks strong motion.
        words: names of the classes.
    """
    kept = used(people)
    if kept["mean_fd"].isna().all():
        return note_figure("motion was not measured")
    sites = sorted(kept["site"].unique())
    figure = new_figure(WIDE, max(2.9, 0.95 + 0.16 * len(sites)))
    groups, by_site, related = figure.subplots(1, 3, width_ratios=[0.85, 1.1, 1.15])
    _groups(groups, kept, limit, words)
    _sites(by_site, kept, sites, limit)
    _related(related, connections, int(kept["mean_fd"].notna().sum()))
    return figure


def _groups(axes: Axes, kept: pd.DataFrame, limit: float, words: ClassWords) -> None:
    ticks, colours = [], class_colours(words.count)
    for place, code in enumerate(words.shown):
        values = kept.loc[kept["diagnosis"] == code, "mean_fd"].dropna().to_numpy(dtype=np.float64)
        strip(axes, place, values, colours[code])
        ticks.append(f"{words.short[code]}\nn = {len(values)}")
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlim(-0.55, len(ticks) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("mean framewise displacement (mm)")
    known = kept["mean_fd"].dropna()
    axes.set_ylim(0, 1.05 * max(float(known.max()), limit))
    axes.axhline(limit, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    above = f"{int((known > limit).sum())} of {len(known)} above {limit:g} mm"
    titled(axes, words.listed[:1].upper() + words.listed[1:], above)


def _sites(axes: Axes, kept: pd.DataFrame, sites: list[str], limit: float) -> None:
    titled(axes, "Sites", "dot: median; line: middle half of the subjects")
    for row, site in enumerate(sites):
        values = kept.loc[kept["site"] == site, "mean_fd"].dropna().to_numpy(dtype=np.float64)
        if len(values):
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            axes.plot([low, high], [row, row], color=ACCENT, alpha=0.5, linewidth=2.5, solid_capstyle="round")
            axes.plot(median, row, "o", color=ACCENT, markersize=4)
    axes.axvline(limit, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean framewise displacement (mm)")
    axes.grid(axis="x")
    horizontal_rows(axes, [str(site) for site in sites])
    axes.tick_params(axis="y", labelsize=7.5 if len(sites) > 12 else 8)


def _related(axes: Axes, connections: pd.DataFrame, subjects: int) -> None:
    titled(axes, "Connections (QC-FC)", "line: expected if motion left no trace")
    r = connections["r"].dropna().to_numpy(dtype=np.float64)
    if not len(r):
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes, color=FAINT)
        axes.set(xticks=[], yticks=[])
        return
    chance = 1 / np.sqrt(max(subjects - 1, 1))
    reach = max(1.05 * float(np.abs(r).max()), 3.5 * chance)
    edges = np.linspace(-reach, reach, 51)
    counts, _, _ = axes.hist(r, list(edges), color="#9aa7c7", edgecolor="white", linewidth=0.3)
    grid = np.linspace(-reach, reach, 300)
    expected = stats.norm.pdf(grid, scale=chance) * len(r) * (edges[1] - edges[0])
    axes.plot(grid, expected, color=INK)
    axes.set_ylim(0, 1.05 * max(float(np.max(counts)), float(expected.max())))
    axes.set_xlabel("correlation with mean FD, over subjects")
    axes.set_ylabel(f"connections (of {len(r):,})")
