"""Learning curves: loss and test accuracy after every round, with their spread over runs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from brainfed.reporting.figures.style import FAINT, INK, WIDE, new_figure, note_figure
from brainfed.reporting.variants import ShownVariant, by_family
from brainfed.runtime.artefacts import read_table

MOST_COLUMNS = 5
CURVES = ("training_loss", "test_loss", "test_accuracy")


def read_history(files: Sequence[tuple[str, int, str]]) -> pd.DataFrame:
    """Curves of all runs, averaged over institutions.

    Args:
        files: (variant, repeat, path of its history).

    Returns:
        variant, repeat, fold, round, training_loss, test_loss, test_accuracy; methods without rounds have no row.
    """
    parts = []
    for variant, repeat, path in files:
        history = read_table(path, ["fold", "institution", "round", *CURVES])
        means = history.groupby(["fold", "round"])[list(CURVES)].mean().reset_index()
        parts.append(means.assign(variant=variant, repeat=repeat))
    return pd.concat(parts, ignore_index=True)


def learning_figure(history: pd.DataFrame, variants: Sequence[ShownVariant]) -> Figure:
    """Two panels a variant: losses above, test accuracy below; mean over runs and one standard deviation.

    Args:
        history: as `read_history` returns it.
        variants: in any order; those without curves are left out.
    """
    shown = [variant for variant in by_family(variants) if (history["variant"] == variant.name).any()]
    if not shown:
        return note_figure("no method of this experiment trains in rounds")
    curves = {variant.name: _mean_and_sd(history, variant) for variant in shown}
    blocks = -(-len(shown) // MOST_COLUMNS)
    columns = max(-(-len(shown) // blocks), 3)
    figure = new_figure(WIDE, 0.35 + 3.0 * blocks)
    grid = figure.add_gridspec(2 * blocks, columns, hspace=0.04, wspace=0.03)
    losses = ["training_loss", "test_loss"]
    top = max(float((mean + sd.fillna(0))[losses].max().max()) for mean, sd in curves.values())
    lowest = min(float((mean - sd)["test_accuracy"].min()) for mean, sd in curves.values())
    floor = min(0.4, np.floor(10 * lowest) / 10) if np.isfinite(lowest) else 0.0
    for number, variant in enumerate(shown):
        row, column = divmod(number, columns)
        mean, sd = curves[variant.name]
        upper = figure.add_subplot(grid[2 * row, column])
        lower = figure.add_subplot(grid[2 * row + 1, column])
        upper.set_title(broken(variant.title, 19), color=variant.colour, fontsize=8)
        _curve(upper, mean, sd, "training_loss", variant.colour, "-")
        _curve(upper, mean, sd, "test_loss", FAINT, (0, (3, 2)))
        _curve(lower, mean, sd, "test_accuracy", variant.colour, "-")
        upper.set_ylim(0, 1.1 * top)
        lower.set_ylim(floor, 1.0)
        lower.axhline(0.5, color=FAINT, linewidth=0.7, linestyle=(0, (1, 2)))
        _end_value(lower, mean, variant.colour)
        for axes in (upper, lower):
            axes.grid(axis="y")
            axes.set_xlim(0, 1.04 * float(mean.index[-1]))
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            if column:
                axes.tick_params(labelleft=False)
        upper.tick_params(labelbottom=False)
        if not column:
            upper.set_ylabel("loss")
            lower.set_ylabel("test accuracy")
            if not row:
                _name_losses(upper, variant.colour)
        lower.set_xlabel("local epochs or rounds")
    return figure


def _mean_and_sd(history: pd.DataFrame, variant: ShownVariant) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean and standard deviation over runs, indexed by local epochs."""
    chosen = history[history["variant"] == variant.name]
    epochs = chosen["round"] * max(variant.epochs_a_round, 1)
    grouped = chosen.assign(epochs=epochs).groupby("epochs")[list(CURVES)]
    return grouped.mean(), grouped.std(ddof=1)


def _curve(
    axes: Axes, mean: pd.DataFrame, sd: pd.DataFrame, column: str, colour: str, style: str | tuple[int, tuple[int, int]]
) -> None:
    epochs = mean.index.to_numpy(dtype=np.float64)
    middle = mean[column].to_numpy(dtype=np.float64)
    reach = np.nan_to_num(sd[column].to_numpy(dtype=np.float64))
    axes.fill_between(epochs, middle - reach, middle + reach, color=colour, alpha=0.15, linewidth=0)
    alone = np.isfinite(middle).sum() == 1
    axes.plot(epochs, middle, color=colour, linestyle=style, marker="o" if alone else None, markersize=4)


def _end_value(axes: Axes, mean: pd.DataFrame, colour: str) -> None:
    last = float(mean["test_accuracy"].iloc[-1])
    axes.annotate(
        f"{last:.2f}", (float(mean.index[-1]), last), (0, 9), textcoords="offset points", ha="right", color=colour,
        fontsize=8, fontweight="bold",
    )  # fmt: skip


def _name_losses(axes: Axes, colour: str) -> None:
    for text, paint, up in (("dashed: test", INK, 0.9), ("solid: training", colour, 0.78)):
        axes.text(0.04, up, text, color=paint, fontsize=7.5, transform=axes.transAxes, va="center")


def broken(title: str, width: int = 17) -> str:
    """A title on at most two lines."""
    if len(title) <= width:
        return title
    cut = title.rfind(" ", 0, width + 1)
    return title if cut < 0 else f"{title[:cut]}\n{title[cut + 1 :]}"
