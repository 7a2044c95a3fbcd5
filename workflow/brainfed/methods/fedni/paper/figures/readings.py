"""Accuracies of every reading, a panel a method with the paper's number as a line, and their distances to these."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.methods.fedni.paper.readings import Readings, find_readings
from brainfed.reporting.figures.interval_rows import interval_row, text_column
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    PAPER,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import short
from brainfed.reporting.scored import Scored


def readings_figure(outline: ExperimentOutline, scored: Scored) -> Figure:
    """A row a reading, the nearest to the paper first."""
    found = find_readings(outline, scored)
    if found is None:
        return note_figure("no two readings of the paper's methods")
    figure = new_figure(WIDE, 1.5 + 0.27 * len(found.rows))
    panels = figure.subplots(1, len(found.titles) + 1, sharey=True)
    colours = {variant.method: variant.colour for variant in outline.variants}
    for axes, (method, title) in zip(panels[:-1], found.titles.items(), strict=True):
        _method_panel(axes, found, method, colours[method])
        axes.set_title(title)
    _distance_panel(panels[-1], found)
    horizontal_rows(panels[0], [row.title for row in found.rows])
    for axes in panels[1:]:
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    headed(figure, found.finding, width=112)
    key_below(
        figure,
        [
            Line2D([], [], marker="o", color=FAINT, label="ours, with its corrected 95 % interval"),
            Line2D([], [], marker="o", color=FAINT, markerfacecolor="white", label="has none of the settings"),
            Line2D([], [], color=PAPER, linewidth=0.9, linestyle="--", label="printed in the paper"),
        ],
    )
    return figure


def _method_panel(axes: Axes, found: Readings, method: str, colour: str) -> None:
    for place, row in enumerate(found.rows):
        if method in row.scores:
            interval_row(axes, place, row.scores[method], colour, size=5, hollow=method in row.unread)
    axes.axvline(found.printed[method], color=PAPER, linewidth=0.9, linestyle="--")
    axes.set_xlabel("accuracy")
    axes.margins(x=0.1)
    axes.locator_params(axis="x", nbins=3)
    axes.grid(axis="x")


def _distance_panel(axes: Axes, found: Readings) -> None:
    for place, row in enumerate(found.rows):
        axes.plot([0, row.distance], [place, place], color=INK, linewidth=1.2)
        axes.plot(row.distance, place, "o", markersize=5, color=INK)
    axes.set_title("Distance")
    axes.set_xlabel("mean, absolute")
    axes.set_xlim(left=0)
    axes.locator_params(axis="x", nbins=3)
    axes.grid(axis="x")
    text_column(axes, [short(row.distance) for row in found.rows], range(len(found.rows)))
