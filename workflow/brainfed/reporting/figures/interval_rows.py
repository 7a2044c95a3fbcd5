"""Rows of a dot with its interval, and columns of text beside them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from brainfed.reporting.figures.style import FAINT
from brainfed.reporting.intervals import Interval


def interval_row(axes: Axes, row: float, found: Interval, colour: str, *, size: float, hollow: bool = False) -> None:
    """A dot at the mean over a bar of its interval; hollow: the dot has a white centre."""
    if np.isfinite(found.low):
        axes.plot(
            [found.low, found.high], [row, row], color=colour, linewidth=size / 3, alpha=0.55, solid_capstyle="butt"
        )
    axes.plot(found.mean, row, "o", markersize=size, color=colour, markerfacecolor="white" if hollow else colour)


def paint_labels(axes: Axes, colours: Sequence[str]) -> None:
    """Colour the names of the rows."""
    for label, colour in zip(axes.get_yticklabels(), colours, strict=True):
        label.set_color(colour)


def value_column(axes: Axes, scores: Sequence[Interval], rows: Sequence[float] | None = None) -> None:
    """The means in a column of their own to the right of the axes."""
    text_column(axes, [score.text for score in scores], range(len(scores)) if rows is None else rows)


def text_column(axes: Axes, texts: Sequence[str], rows: Sequence[float], *, head: str = "", offset: float = 5) -> None:
    """Texts in a column `offset` points to the right of the axes, under an optional head."""
    for row, text in zip(rows, texts, strict=True):
        axes.annotate(
            text, (1, row), (offset, 0), xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
            fontsize=7.5,
        )  # fmt: skip
    if head:
        axes.annotate(
            head, (1, 1), (offset, 2), xycoords="axes fraction", textcoords="offset points", fontsize=7, color=FAINT
        )
