"""What the scans are like: length and repetition time by site, motion, coverage, regions without signal."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from brainfed.reporting.cohort_figures import strip
from brainfed.reporting.people import used
from brainfed.reporting.style import DIAGNOSIS_COLOURS, DIAGNOSIS_TITLES, FAINT, INK, WIDE, horizontal_rows, new_figure

ACCENT = "#44559a"
MOTION_LIMIT = 0.2
"""mm; the mean framewise displacement above which many studies leave a scan out."""


def series_figure(people: pd.DataFrame) -> Figure:
    """Number of volumes, repetition time and length of the scans of every site."""
    kept = used(people)
    kept = kept.assign(minutes=kept["timepoints"] * kept["tr"] / 60)
    sites = list(kept["site"].value_counts(sort=False).sort_index().index)
    panels = [("timepoints", "volumes"), ("tr", "repetition time (s)"), ("minutes", "scan length (min)")]
    panels = [panel for panel in panels if kept[panel[0]].notna().any()]
    figure = new_figure(WIDE, 0.75 + 0.24 * len(sites))
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (column, title) in zip(all_axes, panels, strict=True):
        for row, site in enumerate(sites):
            _range(axes, row, kept.loc[kept["site"] == site, column].dropna().to_numpy(dtype=np.float64))
        axes.set_xlabel(title)
        axes.margins(x=0.2)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(axis="x")
    horizontal_rows(all_axes[0], [f"{site} (n = {(kept['site'] == site).sum()})" for site in sites])
    for axes in all_axes[1:]:
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    if kept["tr"].isna().all():
        all_axes[-1].annotate(
            "repetition times are not known", (1, 1), xycoords="axes fraction", ha="right", va="bottom", color=FAINT
        )
    return figure


def _range(axes: Axes, row: int, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Smallest to largest value as a line, the median as a dot with its number."""
    if not len(values):
        return
    median = float(np.median(values))
    axes.plot([values.min(), values.max()], [row, row], color=ACCENT, alpha=0.5, linewidth=2.5, solid_capstyle="round")
    axes.plot(median, row, "o", color=ACCENT, markersize=5)
    axes.annotate(f"{median:.3g}", (values.max(), row), (6, 0), textcoords="offset points", va="center", fontsize=7.5)


def quality_figure(people: pd.DataFrame, coverage: pd.DataFrame) -> Figure:
    """Motion by diagnosis, coverage by region, number of regions without signal by subject."""
    kept = used(people)
    figure = new_figure(WIDE, 2.9)
    motion, covered, silent = figure.subplots(1, 3, width_ratios=[0.9, 1.2, 1])
    _motion(motion, kept)
    _coverage(covered, coverage[coverage["subject"].isin(set(kept["subject"]))])
    _silent(silent, kept)
    return figure


def _motion(axes: Axes, kept: pd.DataFrame) -> None:
    axes.set_title("Motion")
    ticks = []
    for place, code in enumerate((1, 0)):
        values = kept.loc[kept["diagnosis"] == code, "mean_fd"].dropna().to_numpy(dtype=np.float64)
        strip(axes, place, values, DIAGNOSIS_COLOURS[code])
        ticks.append(f"{DIAGNOSIS_TITLES[code]}\nn = {len(values)}")
    axes.set_xticks([0, 1], ticks)
    axes.set_xlim(-0.55, 1.55)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("mean framewise displacement (mm)")
    if kept["mean_fd"].notna().any():
        axes.axhline(MOTION_LIMIT, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        known = kept["mean_fd"].dropna()
        axes.annotate(
            f"{int((known > MOTION_LIMIT).sum())} of {len(known)} above {MOTION_LIMIT} mm", (1, 1), (0, 7),
            xycoords="axes fraction", textcoords="offset points", ha="right", fontsize=7.5, color=FAINT,
        )  # fmt: skip
    else:
        axes.text(0.5, 0.5, "not known", ha="center", transform=axes.transAxes, color=FAINT)


def _coverage(axes: Axes, coverage: pd.DataFrame) -> None:
    by_region = coverage.groupby("region")["coverage"].agg(["mean", "min"]).sort_values("mean")
    axes.set_title("Coverage of regions")
    order = np.arange(1, len(by_region) + 1)
    series_only = coverage["coverage"].isin([0, 1]).all()
    if not series_only:
        axes.fill_between(
            order, 100 * by_region["min"].to_numpy(), 100 * by_region["mean"].to_numpy(),
            color=ACCENT, alpha=0.18, linewidth=0, step="mid",
        )  # fmt: skip
    axes.step(order, 100 * by_region["mean"].to_numpy(), where="mid", color=ACCENT)
    axes.set_xlabel(f"regions, lowest first (of {len(by_region)})")
    axes.set_ylabel("subjects with a signal (%)" if series_only else "voxels with a signal (%)")
    axes.set_ylim(-2, 104)
    if by_region["min"].min() >= 1:
        note = "every region whole in every subject"
    else:
        note = f"lowest: region {by_region.index[0]}, mean {100 * by_region['mean'].iloc[0]:.1f} %"
    axes.annotate(note, (0.97, 0.06), xycoords="axes fraction", ha="right", fontsize=7.5, color=FAINT)


def _silent(axes: Axes, kept: pd.DataFrame) -> None:
    count = (kept["constant_regions"] + kept["empty_regions"]).astype("int64")
    axes.set_title("Regions without signal")
    affected = np.sort(count[count > 0].to_numpy())[::-1]
    if not len(affected):
        axes.text(0.5, 0.55, f"none in {len(kept)} subjects", ha="center", transform=axes.transAxes, color=FAINT)
        axes.set(xticks=[], yticks=[])
        axes.spines[["left", "bottom"]].set_visible(False)
        return
    places = np.arange(1, len(affected) + 1)
    axes.vlines(places, 0, affected, color=ACCENT, alpha=0.5, linewidth=1.6 if len(affected) < 40 else 1)
    axes.plot(places, affected, "o", color=ACCENT, markersize=4 if len(affected) < 40 else 2.5)
    axes.set_ylim(0, 1.08 * affected[0])
    axes.set_xlim(0.2, len(affected) + 0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(f"affected subjects ({len(affected)} of {len(kept)})")
    axes.set_ylabel("regions without signal")
    axes.annotate(
        f"most: {affected[0]}", (places[0], affected[0]), (7, 0), textcoords="offset points", va="center",
        fontsize=7.5, color=INK,
    )  # fmt: skip
