"""Style, labels and output of all figures of matplotlib."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from brainfed.reporting import FAINT, INK
from brainfed.runtime import atomic

# Style and output of all figures: the same input gives the same SVG.
#
# Words are text, which a browser finds and a screen reader reads; Verdana has the widths of DejaVu Sans where that is
# not installed.

WIDE = 9.0
PIXELS_PER_INCH = 220

SETTINGS: dict[Any, Any] = {
    "backend": "svg", "svg.fonttype": "none", "svg.hashsalt": "brainfed",
    "figure.facecolor": "white", "savefig.facecolor": "white", "lines.linewidth": 1.4, "text.color": INK,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"], "font.size": 8.5,
    "axes.labelcolor": INK, "axes.edgecolor": FAINT, "axes.linewidth": 0.7, "axes.labelsize": 8.5, "axes.titlesize": 9,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 7,
    "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
    "xtick.color": FAINT, "xtick.labelcolor": INK, "xtick.labelsize": 8, "xtick.major.width": 0.7,
    "ytick.color": FAINT, "ytick.labelcolor": INK, "ytick.labelsize": 8, "ytick.major.width": 0.7,
    "xtick.major.size": 3, "ytick.major.size": 3,
    "grid.color": "#e8eaed", "grid.linewidth": 0.7, "legend.frameon": False, "legend.fontsize": 8,
}  # fmt: skip


@contextmanager
def drawing() -> Iterator[None]:
    """Apply the report's style to everything drawn and saved inside."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def placed_figure(height: float) -> Figure:
    """An empty figure of this height (inches) whose axes are placed by hand."""
    figure = Figure(figsize=(WIDE, height))
    FigureCanvasSVG(figure)
    return figure


def save_svg(figure: Figure, path: str | Path) -> None:
    """Write a figure without date or version, so that equal figures are equal files; its finding is the SVG's title."""
    metadata: dict[str, str | None] = {"Date": None, "Creator": None}
    if figure.get_suptitle():
        metadata["Title"] = " ".join(figure.get_suptitle().split())
    with atomic(path) as temporary:
        figure.savefig(temporary, format="svg", dpi=PIXELS_PER_INCH, metadata=metadata)


# Sides of a brain that is drawn as seen through glass: which is left, which is the front.

SIDES = {"x": ("back", "front"), "y": ("left", "right"), "z": ("left", "right")}
"""View of nilearn's glass brain -> words at the two ends of its horizontal axis."""
SEEN = {"x": "from the side", "y": "from behind", "z": "from above, front at the top"}
"""View -> where it is looked at from."""


def name_sides(axes: Axes, view: str) -> None:
    """Write the sides of a view (nilearn's `display_mode`) above the brain, and below it where it is looked at from."""
    for x, word, side in zip((0.12, 0.88), SIDES[view], ("left", "right"), strict=True):
        axes.text(x, 0.93, word, transform=axes.transAxes, ha=side, fontsize=8.5, fontweight="bold")
    axes.text(0.5, -0.06, SEEN[view], transform=axes.transAxes, ha="center", fontsize=7.5, color=FAINT)
