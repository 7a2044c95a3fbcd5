"""Style, labels and output of all figures of matplotlib."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from math import cos, pi, sin
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from brainfed.runtime.artefacts import atomic

# Style and output of all figures: the same input gives the same SVG.
#
# Words are text, which a browser finds and a screen reader reads; Verdana has the widths of DejaVu Sans where that is
# not installed.

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


# Places of labels beside points, so that no label lies on another one or on a marker. All lengths are in points.

DIRECTIONS = tuple(pi * part / 8 for part in (0, 8, 4, 12, 2, 6, 14, 10, 1, 7, 15, 9, 3, 5, 13, 11))
"""Right, left, above and below come first."""
STEP = 3.0
"""From one ring of places around a point to the next."""


class Box(NamedTuple):
    """A rectangle; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share an area."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)


def text_size(text: str, size: float) -> tuple[float, float]:
    """Width and height of a text of one line in the report's font."""
    width, height, descent = text_to_path.get_text_width_height_descent(
        text, FontProperties(family="DejaVu Sans", size=size), ismath=False
    )
    return float(width), max(float(height + descent), size)


def label_places(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    radii: Sequence[float],
    frame: Box,
    others: Sequence[Box] = (),
) -> list[Box]:
    """The place of each label: the nearest free one inside the frame; without a free one the nearest.

    Args:
        points: centres of the markers.
        sizes: width and height of the labels.
        radii: of the markers.
        frame: where labels may lie.
        others: what no label may cover, beside the markers.
    """
    taken = [*others, *(Box(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True))]
    found: list[Box] = []
    for point, size, radius in zip(points, sizes, radii, strict=True):
        inside = (box for box in _places(point, size, radius, frame) if _inside(box, frame))
        first = next(inside, next(_places(point, size, radius, frame)))
        free = (box for box in chain([first], inside) if not any(map(box.overlaps, taken)))
        found.append(next(free, first))
        taken.append(found[-1])
    return found


def _places(point: tuple[float, float], size: tuple[float, float], radius: float, frame: Box) -> Iterator[Box]:
    """Places around a point, ring after ring, until the rings leave the frame."""
    (x, y), (width, height) = point, size
    reach = frame.right - frame.left + frame.top - frame.bottom
    for ring in range(1 + int(reach / STEP)):
        away = radius + 1.5 + ring * STEP
        for angle in DIRECTIONS:
            middle_x, middle_y = x + cos(angle) * (away + width / 2), y + sin(angle) * (away + height / 2)
            yield Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)


def _inside(box: Box, frame: Box) -> bool:
    return box.left >= frame.left and box.right <= frame.right and box.bottom >= frame.bottom and box.top <= frame.top


# Sides of a brain that is drawn as seen through glass: which is left, which is the front.

SIDES = {"x": ("back", "front"), "y": ("left", "right"), "z": ("left", "right")}
"""View of nilearn's glass brain -> words at the two ends of its horizontal axis."""
SEEN = {"x": "from the side", "y": "from behind", "z": "from above, front at the top"}
"""View -> where it is looked at from."""


def name_sides(axes: Axes, view: str) -> None:
    """Write the sides of a view above the brain, and below it where it is looked at from.

    Args:
        axes: those of the glass brain.
        view: `x`, `y` or `z`, as nilearn's `display_mode`.
    """
    for x, word in zip((0.12, 0.88), SIDES[view], strict=True):
        axes.text(
            x, 0.93, word, transform=axes.transAxes, ha="left" if x < 0.5 else "right", fontsize=8.5, fontweight="bold"
        )
    axes.text(0.5, -0.06, SEEN[view], transform=axes.transAxes, ha="center", fontsize=7.5, color=FAINT)
