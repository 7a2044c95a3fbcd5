"""What an institution wins over its own local model: one dot an institution, one diamond for their mean."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from brainfed.reporting.intervals import signed
from brainfed.reporting.score_figures import METRIC_TITLES, SHOWN_METRICS
from brainfed.reporting.style import FAINT, INK, WIDE, horizontal_rows, new_figure, note_figure
from brainfed.reporting.variants import ShownVariant, by_family


def gain_figure(gain: pd.DataFrame, variants: Sequence[ShownVariant], local: str) -> Figure:
    """Dots for AUC and accuracy of every variant that is no local model or floor.

    Args:
        gain: variant, institution, metric, mean, sd, runs.
        variants: all variants of the experiment.
        local: the variant that the gain is over.
    """
    titles = {variant.name: variant.title for variant in variants}
    shown = [
        variant
        for variant in by_family(variants)
        if variant.family != "floor" and not variant.trains_alone and (gain["variant"] == variant.name).any()
    ]
    if not shown or local not in titles:
        return note_figure("the experiment has no local model to compare with")
    institutions = sorted(gain["institution"].unique())
    figure = new_figure(WIDE, 0.85 + 0.3 * len(shown))
    all_axes = figure.subplots(1, 2, sharey=True)
    for axes, metric in zip(all_axes, SHOWN_METRICS, strict=True):
        for row, variant in enumerate(shown):
            part = gain[(gain["variant"] == variant.name) & (gain["metric"] == metric)].dropna(subset=["mean"])
            values = part["mean"].to_numpy(dtype=np.float64)
            if not len(values):
                continue
            axes.plot([values.min(), values.max()], [row, row], color=variant.colour, alpha=0.35, linewidth=1.2)
            axes.scatter(values, np.full(len(values), row), s=20, color=variant.colour, alpha=0.6, linewidths=0)
            axes.plot(values.mean(), row, "D", color=variant.colour, markeredgecolor="white", markersize=7)
            better = int((values > 0).sum())
            axes.annotate(
                f"{signed(float(values.mean()))}   {better}/{len(values)}", (1, row), (5, 0),
                xycoords=("axes fraction", "data"), textcoords="offset points", va="center", fontsize=7.5,
            )  # fmt: skip
        axes.axvline(0, color=INK, linewidth=0.8)
        axes.annotate(
            "mean   better",
            (1, 1),
            (5, 3),
            xycoords="axes fraction",
            textcoords="offset points",
            fontsize=7,
            color=FAINT,
        )
        axes.set_xlabel(f"{METRIC_TITLES[metric]} minus that of {titles[local]}")
        axes.margins(x=0.08)
        axes.grid(axis="x")
    horizontal_rows(all_axes[0], [variant.title for variant in shown])
    for label, variant in zip(all_axes[0].get_yticklabels(), shown, strict=True):
        label.set_color(variant.colour)
    all_axes[1].tick_params(axis="y", length=0)
    all_axes[1].spines["left"].set_visible(False)
    all_axes[0].set_title(f"{len(institutions)} institutions, a dot each", fontweight="normal", fontsize=8)
    return figure
