"""Losses and accuracy after every round, one line for each number of local epochs (FedNI Fig. 9)."""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from brainfed.reporting.figures.histories import read_history
from brainfed.reporting.figures.paper.sweep_series import axis_title
from brainfed.reporting.figures.style import WIDE, headed, key_below, new_figure, note_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import ShownVariant

PANELS = (
    ("training_loss", "training loss (cross-entropy)"),
    ("test_loss", "test loss (cross-entropy)"),
    ("test_accuracy", "test accuracy"),
)
DASHES: tuple[tuple[float, tuple[float, ...]] | None, ...] = (
    None,
    (0, (5, 1.5)),
    (0, (2.5, 1.5)),
    (0, (1, 1.2)),
    (0, (6, 1.5, 1, 1.5)),
)


def rounds_figure(outline: ExperimentOutline) -> Figure:
    """Three panels; mean over institutions and runs."""
    axis = outline.axes[0]
    shown = [variant for variant in outline.variants if variant.setting(axis) is not None and variant.histories]
    shown = sorted(shown, key=lambda variant: float(variant.setting(axis)))
    curves = {variant.name: _curves(variant) for variant in shown}
    shown = [variant for variant in shown if len(curves[variant.name])]
    if not shown:
        return note_figure("no method of this experiment trains in rounds")
    figure = new_figure(WIDE, 3.2)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, len(shown)))
    for axes, (column, title) in zip(figure.subplots(1, 3), PANELS, strict=True):
        for number, variant in enumerate(shown):
            mean = curves[variant.name][column]
            axes.plot(
                mean.index, mean, color=colours[number], linestyle=DASHES[number % len(DASHES)],
                marker="o" if len(mean) == 1 else None,
            )  # fmt: skip
        axes.set_title(title, fontweight="normal", fontsize=8.5)
        axes.set_xlabel("communication rounds")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.set_xlim(0, None)
        axes.grid(axis="y")
    ends = {variant.name: float(curves[variant.name]["test_accuracy"].iloc[-1]) for variant in shown}
    headed(figure, _finding(shown, axis, ends, int(curves[shown[0].name].index[-1])))
    key = [
        Line2D(
            [], [], color=colours[number], linestyle=DASHES[number % len(DASHES)],
            label=f"{_named(variant, axis, shown)} (ends at {rounded(ends[variant.name], 2)})",
        )
        for number, variant in enumerate(shown)
    ]  # fmt: skip
    key_below(figure, key, columns=min(len(key), 5))
    return figure


def _curves(variant: ShownVariant) -> pd.DataFrame:
    """Mean over runs, indexed by round."""
    history = read_history([(variant.name, repeat, path) for repeat, path in enumerate(variant.histories)])
    return history.groupby("round")[[column for column, _ in PANELS]].mean()


def _named(variant: ShownVariant, axis: str, shown: Sequence[ShownVariant]) -> str:
    """`E = 5`; with its method if there are several."""
    name = "E" if axis.endswith("local_epochs") else axis_title(axis)
    value = f"{name} = {variant.setting(axis)}"
    several = len({other.method for other in shown}) > 1
    return f"{variant.method_title}, {value}" if several else value


def _finding(shown: Sequence[ShownVariant], axis: str, ends: dict[str, float], rounds: int) -> str:
    if len(shown) == 1:
        return f"After {rounds} rounds the accuracy is {rounded(ends[shown[0].name], 3)}"
    best = max(shown, key=lambda variant: ends[variant.name])
    worst = min(shown, key=lambda variant: ends[variant.name])
    return (
        f"After {rounds} rounds the accuracy is highest with {_named(best, axis, shown)} "
        f"({rounded(ends[best.name], 2)}) and lowest with "
        f"{_named(worst, axis, shown)} ({rounded(ends[worst.name], 2)}; not tested)"
    )
