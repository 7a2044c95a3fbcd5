"""Quality of the scans: length by site, similarity of connectivity, signal to noise, coverage, silent regions."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from brainfed.reporting.figures.style import FAINT, INK, WIDE, horizontal_rows, new_figure, note_figure, titled
from brainfed.reporting.people import used
from brainfed.reporting.rounding import rounded, significant_digits

ACCENT = "#44559a"
ODD = "#b45309"


def series_figure(people: pd.DataFrame) -> Figure:
    """Number of volumes, repetition time and length of the scans of every site."""
    kept = used(people)
    if kept["timepoints"].isna().all():
        return note_figure("there are no scans in time: nothing has a length")
    kept = kept.assign(minutes=kept["kept_seconds"] / 60)
    sites = list(kept["site"].value_counts(sort=False).sort_index().index)
    scrubbed = (kept["timepoints"] < kept["volumes"]).any()
    panels = [
        ("timepoints", "volumes left after scrubbing" if scrubbed else "volumes"),
        ("tr", "repetition time (s)"),
        ("minutes", "minutes left after scrubbing" if scrubbed else "scan length (min)"),
    ]
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
    axes.annotate(
        significant_digits(median, 3),
        (values.max(), row),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=7.5,
    )


def quality_figure(people: pd.DataFrame, coverage: pd.DataFrame, unlike: float) -> Figure:
    """Similarity of each subject's connectivity to the others', signal to noise, coverage, regions without signal.

    Args:
        people: the participants with their measures.
        coverage: subject, region, coverage.
        unlike: a robust z below minus this value marks a subject unlike the others.
    """
    kept = used(people)
    covered = coverage[coverage["subject"].isin(set(kept["subject"]))]
    panels: list[Callable[[Axes], None]] = [lambda axes: _likeness(axes, kept, unlike)]
    if kept["tsnr"].notna().any():
        panels.append(lambda axes: _tsnr(axes, kept))
    if len(covered):
        panels.append(lambda axes: _coverage(axes, covered))
    if kept["silent_regions"].notna().any():
        panels.append(lambda axes: _silent(axes, kept))
    figure = new_figure(WIDE, 2.9)
    for draw, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        draw(axes)
    return figure


def _likeness(axes: Axes, kept: pd.DataFrame, unlike: float) -> None:
    known = kept.dropna(subset=["typicality"])
    if known.empty:
        titled(axes, "Likeness of connectivity")
        _say(axes, "not measured")
        return
    odd = (known["typicality_z"] < -unlike).to_numpy()
    r = known["typicality"].to_numpy(dtype=np.float64)
    order = np.argsort(r, kind="stable")
    places = np.arange(1, len(r) + 1)
    axes.plot(places[~odd[order]], r[order][~odd[order]], "o", color=ACCENT, markersize=2, markeredgewidth=0)
    axes.plot(places[odd[order]], r[order][odd[order]], "o", color=ODD, markersize=4, markeredgewidth=0)
    axes.set_xlabel(f"subjects, least alike first (of {len(r)})")
    axes.set_ylabel("correlation with the others' mean")
    found = f"{int(odd.sum())} unlike the others" if odd.any() else "nobody unlike the others"
    titled(axes, "Likeness of connectivity", found, ODD if odd.any() else FAINT)


def _tsnr(axes: Axes, kept: pd.DataFrame) -> None:
    values = kept["tsnr"].dropna().to_numpy(dtype=np.float64)
    axes.hist(values, bins=24, color="#9aa7c7", edgecolor="white", linewidth=0.3)
    axes.axvline(float(np.median(values)), color=INK)
    axes.set_xlabel("temporal SNR, median over regions")
    axes.set_ylabel(f"subjects (of {len(values)})")
    median, lowest = significant_digits(float(np.median(values)), 3), significant_digits(float(values.min()), 3)
    titled(axes, "Signal to noise", f"line: median {median}; lowest {lowest}")


def _say(axes: Axes, text: str) -> None:
    """Write text in place of a plot."""
    axes.text(0.5, 0.55, text, ha="center", transform=axes.transAxes, color=FAINT)
    axes.set(xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)


def _coverage(axes: Axes, coverage: pd.DataFrame) -> None:
    by_region = coverage.groupby("region")["coverage"].agg(["mean", "min"]).sort_values("mean")
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
        note = "every region seen in every subject"
    else:
        note = f"lowest: {by_region.index[0]}, mean {rounded(100 * by_region['mean'].iloc[0], 1)} %"
    titled(axes, "Coverage of regions", note)


def _silent(axes: Axes, kept: pd.DataFrame) -> None:
    count = kept["silent_regions"].fillna(0).astype("int64")
    affected = np.sort(count[count > 0].to_numpy())[::-1]
    if not len(affected):
        titled(axes, "Regions without signal")
        _say(axes, f"none in {len(kept)} subjects")
        return
    places = np.arange(1, len(affected) + 1)
    axes.vlines(places, 0, affected, color=ACCENT, alpha=0.5, linewidth=1.6 if len(affected) < 40 else 1)
    axes.plot(places, affected, "o", color=ACCENT, markersize=4 if len(affected) < 40 else 2.5)
    axes.set_ylim(0, 1.05 * affected[0])
    axes.set_xlim(0.2, len(affected) + 0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(f"affected subjects ({len(affected)} of {len(kept)})")
    axes.set_ylabel("regions without signal")
    titled(axes, "Regions without signal", f"most in one subject: {affected[0]}")
