"""Style and output of all figures: the same input gives the same SVG.

Words are text, which a browser finds and a screen reader reads; Verdana has the widths of DejaVu Sans where that is not
installed.
"""

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.runtime.artefacts import atomic

WIDE = 9.0
HALF = 4.4
INK = "#22262b"
FAINT = "#6b7280"
RULE = "#d5d9de"
PATIENT = "#882255"
CONTROL = "#56a9cf"
MALE = "#44559a"
FEMALE = "#c9a227"
WARM = "#b2182b"
COLD = "#2166ac"
DIAGNOSIS_COLOURS = {1: PATIENT, 0: CONTROL}
MANY_CLASSES = ("#56a9cf", "#e0a100", "#882255", "#117733", "#44559a", "#d55e00", "#7d8590", "#22262b")
"""Colours of three classes and more, in the order of their codes; a ninth has the first again."""
UNLABELLED = "#c4c8cd"
SEX_COLOURS = {"male": MALE, "female": FEMALE}
PAPER = "#22262b"
"""Style of a printed number of the paper: always a hollow diamond."""
REAL, GENERATED = "#7d8590", "#d55e00"
SERIES = (("#d55e00", "o"), ("#0072b2", "s"), ("#008f68", "^"), ("#882255", "D"), ("#c9a227", "v"), ("#56a9cf", "P"))
"""Colour and marker of lines that are no families; both differ, so that the lines are distinct without colour."""
PIXELS_PER_INCH = 220

SETTINGS: dict[Any, Any] = {
    "backend": "svg",
    "svg.fonttype": "none",
    "svg.hashsalt": "brainfed",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 8.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.7,
    "axes.labelsize": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "grid.color": "#e8eaed",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
}


def class_colours(classes: int) -> dict[int, str]:
    """Code of a class -> its colour."""
    if classes == 2:
        return DIAGNOSIS_COLOURS
    return {code: MANY_CLASSES[code % len(MANY_CLASSES)] for code in range(classes)}


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the report's style to everything drawn and saved inside."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of `width` x `height` inches that keeps its labels apart."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure


def placed_figure(width: float, height: float) -> Figure:
    """An empty figure whose axes are placed by hand."""
    figure = Figure(figsize=(width, height))
    FigureCanvasSVG(figure)
    return figure


def save_svg(figure: Figure, path: str | Path) -> None:
    """Write a figure without date or version, so that equal figures are equal files; its finding is the SVG's title."""
    metadata: dict[str, str | None] = {"Date": None, "Creator": None}
    if figure.get_suptitle():
        metadata["Title"] = " ".join(figure.get_suptitle().split())
    with atomic(path) as temporary:
        figure.savefig(temporary, format="svg", dpi=PIXELS_PER_INCH, metadata=metadata)


def note_figure(text: str) -> Figure:
    """A figure with the reason why there is nothing to draw."""
    figure = new_figure(HALF, 0.8)
    figure.text(0.5, 0.5, text, ha="center", va="center", color=FAINT)
    return figure


def headed(figure: Figure, finding: str, width: int = 118) -> None:
    """Write the finding of a figure in bold above it."""
    figure.suptitle(textwrap.fill(finding, width), x=0.005, ha="left", fontsize=9.5, fontweight="bold", linespacing=1.3)


def titled(axes: Axes, title: str, note: str = "", colour: str = FAINT) -> None:
    """The title of one panel, and a note between it and the axes, where no line of the panel reaches."""
    axes.set_title(title, pad=18)
    axes.annotate(
        note, (0, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", va="bottom", fontsize=7.5,
        color=colour,
    )  # fmt: skip


def key_below(figure: Figure, handles: list[Line2D], columns: int = 3) -> None:
    """Add the legend of the marks below the axes."""
    figure.legend(handles=handles, loc="outside lower left", ncols=columns, handlelength=2.6, columnspacing=1.6)


def paper_mark(label: str) -> Line2D:
    """The legend's hollow diamond of a printed number."""
    return Line2D([], [], marker="D", markersize=5.5, markerfacecolor="none", color=PAPER, linestyle="", label=label)


def bare(axes: Axes) -> None:
    """Remove frame and ticks."""
    axes.set_axis_off()


def horizontal_rows(axes: Axes, titles: list[str]) -> None:
    """Label rows 0 ... from the top, without tick marks or a left spine."""
    axes.set_yticks(range(len(titles)), titles)
    axes.set_ylim(len(titles) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
