"""Gain of an institution from federation: the same model federated minus alone, and minus on pooled data."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from brainfed.reporting.figures.style import FAINT, INK, WIDE, horizontal_rows, new_figure, note_figure
from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant, by_family

METRIC = "auc"
SIDES = {"alone": "minus its twin alone", "pooled": "minus its twin on pooled data"}
MEAN_ENDS, SHARE_ENDS = 35, 66
"""Points from the axes at which the two columns of numbers end."""
LEAST_RANGE = 0.01
"""The axis reaches this AUC on both sides: a model that equals its twin differs by rounding alone."""


def gain_figure(gain: pd.DataFrame, variants: Sequence[ShownVariant], scored: Scored) -> Figure:
    """Left the gain over local training, right over pooled data; one dot an institution, a diamond for their mean.

    Args:
        gain: `scores.GAIN_COLUMNS`.
        variants: all variants of the experiment; the federated ones have a row each.
        scored: the runs; they give the mean of a row and its interval.
    """
    shown = [variant for variant in by_family(variants) if (gain["variant"] == variant.name).any()]
    if not shown:
        return note_figure("no federated method has its local or pooled twin in this experiment")
    figure = new_figure(WIDE, 0.95 + 0.3 * len(shown))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (side, title) in zip(panels, SIDES.items(), strict=True):
        for row, variant in enumerate(shown):
            chosen = (gain["variant"] == variant.name) & (gain["against"] == side) & (gain["metric"] == METRIC)
            values = gain[chosen].dropna(subset=["mean"])["mean"].to_numpy(dtype=np.float64)
            twin = variant.twin(side).name
            if len(values) and twin:
                _row(axes, row, values, scored.difference(variant.name, twin, METRIC), variant.colour)
            else:
                _note(axes, row, "no twin", FAINT, SHARE_ENDS)
        axes.axvline(0, color=INK, linewidth=0.8)
        for words, right in (("mean", MEAN_ENDS), ("better", SHARE_ENDS)):
            axes.annotate(
                words, (1, 1), (right, 3), xycoords="axes fraction", textcoords="offset points", fontsize=7,
                color=FAINT, ha="right",
            )  # fmt: skip
        axes.set_xlabel(f"AUC {title}")
        axes.margins(x=0.08)
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, -LEAST_RANGE), max(high, LEAST_RANGE))
        axes.grid(axis="x")
    horizontal_rows(panels[0], [variant.title for variant in shown])
    for label, variant in zip(panels[0].get_yticklabels(), shown, strict=True):
        label.set_color(variant.colour)
    panels[1].tick_params(axis="y", length=0)
    panels[1].spines["left"].set_visible(False)
    institutions = gain["institution"].nunique()
    panels[0].set_title(f"{institutions} institutions, a dot each", fontweight="normal", fontsize=8)
    return figure


def _row(
    axes: Axes, row: int, values: "np.ndarray[tuple[int], np.dtype[np.float64]]", found: Interval, colour: str
) -> None:
    axes.plot([values.min(), values.max()], [row, row], color=colour, alpha=0.35, linewidth=1.2)
    axes.scatter(values, np.full(len(values), row), s=20, color=colour, alpha=0.6, linewidths=0)
    axes.plot(found.mean, row, "D", color=colour, markeredgecolor="white", markersize=7)
    _note(axes, row, signed(found.mean, found.digits), INK, MEAN_ENDS)
    _note(axes, row, f"{int((values > 0).sum())}/{len(values)}", INK, SHARE_ENDS)


def _note(axes: Axes, row: int, text: str, colour: str, right: float) -> None:
    axes.annotate(
        text, (1, row), (right, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
        ha="right", fontsize=7.5, color=colour,
    )  # fmt: skip
