"""Accuracy over two weights of the loss, and the plane of FedSage+ below or above it (FedNI Fig. 6: alpha x beta)."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from brainfed.methods.fedni.paper.numbers import FEDNI_TABLE_V, paper_cohort
from brainfed.methods.fedni.paper.printed import as_in_the_paper
from brainfed.reporting.figures.paper.sweep_series import axis_title
from brainfed.reporting.figures.style import INK, PAPER, WARM, WIDE, headed, new_figure, note_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import Scored, significant
from brainfed.reporting.variants import ShownVariant, changed_settings

METRIC = "accuracy"
PLANE = "fedsage-plus"


@dataclass(frozen=True)
class Surface:
    """Mean accuracy at every pair of values.

    Attributes:
        rows: values of the first axis, ascending.
        columns: values of the second.
        variants: (rows, columns) variants; None if the sweep has no such variant.
        mean: (rows, columns), NaN without a variant.
        text: (rows, columns) the same as printed text.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    variants: tuple[tuple[ShownVariant | None, ...], ...]
    mean: NDArray[np.float64]
    text: tuple[tuple[str, ...], ...]


def surface(outline: ExperimentOutline, scored: Scored) -> Surface:
    """The variants that have both settings, on their grid."""
    first, second = outline.axes
    found = {
        (float(variant.setting(first)), float(variant.setting(second))): variant
        for variant in outline.variants
        if variant.setting(first) is not None and variant.setting(second) is not None
    }
    rows = tuple(sorted({row for row, _ in found}))
    columns = tuple(sorted({column for _, column in found}))
    grid = tuple(tuple(found.get((row, column)) for column in columns) for row in rows)
    scores = [[scored.interval(cell.name, METRIC) if cell else None for cell in line] for line in grid]
    mean = np.array([[score.mean if score else np.nan for score in line] for line in scores])
    text = tuple(tuple(score.text if score else "" for score in line) for line in scores)
    return Surface(rows, columns, grid, mean.reshape(len(rows), len(columns)), text)


def surface_figure(outline: ExperimentOutline, scored: Scored) -> Figure:
    """Left: the grid in numbers. Right: one line for each value of the second axis, with the planes."""
    grid = surface(outline, scored)
    if not grid.mean.size:
        return note_figure("no variant of this experiment sweeps both settings")
    ours = [variant for variant in outline.variants if variant.method == PLANE]
    plane = scored.interval(ours[0].name, METRIC).mean if ours else np.nan
    printed = np.nan
    if as_in_the_paper(outline) and ours and not changed_settings(ours[0]):
        printed = FEDNI_TABLE_V[paper_cohort(outline.cohort)[0]][PLANE][0][0]
    figure = new_figure(WIDE, 1.55 + 0.42 * max(len(grid.rows), 5))
    left, right = figure.subplots(1, 2, width_ratios=(1.12, 1))
    names = [axis_title(axis) for axis in outline.axes]
    _heat(left, grid, plane, names)
    _profiles(right, grid, plane, printed, names)
    compared = PageTests(scored, outline.variants, outline.reference)
    headed(figure, surface_finding(grid, ours[0] if ours else None, compared))
    return figure


def surface_finding(grid: Surface, plane: ShownVariant | None, compared: PageTests) -> str:
    """Number of cells with the method above the plane, and of those with a significant difference."""
    cells = [cell for line in grid.variants for cell in line if cell is not None]
    scores = sorted((compared.scored.interval(cell.name, METRIC) for cell in cells), key=lambda score: score.mean)
    span = f"accuracy from {scores[0].text} to {scores[-1].text} over {len(cells)} pairs of weights"
    if plane is None:
        return f"{cells[0].method_title}: {span}"
    level = compared.scored.interval(plane.name, METRIC)
    above = int(np.nansum(grid.mean > level.mean))
    tests = compared.differences(plane.name, [cell.name for cell in cells], METRIC)
    count = sum(significant(p) and found.mean > 0 for found, p in tests.values())
    counted = compared.counted(plane.name, [cell.name for cell in cells], METRIC)
    surely = f"{count} of them significantly" if count else "none significantly"
    surely += f" (Holm-corrected {counted})" if counted else ""
    if not any(np.isfinite(p) for _, p in tests.values()):
        surely = "too few runs to test it"
    return f"{cells[0].method_title} is above {plane.title} ({level.text}) at {above} of {len(cells)} pairs, {surely}"


def _heat(axes: Axes, grid: Surface, plane: float, names: Sequence[str]) -> None:
    axes.imshow(np.ma.masked_invalid(grid.mean), cmap="cividis", origin="lower", aspect="auto")
    middle = (np.nanmin(grid.mean) + np.nanmax(grid.mean)) / 2
    for (row, column), value in np.ndenumerate(grid.mean):
        if np.isfinite(value):
            under = "\n\u25bc" if value <= plane else ""
            axes.text(
                column, row, f"{grid.text[row][column]}{under}", ha="center", va="center", fontsize=7.5,
                linespacing=0.95, color="white" if value < middle else INK,
            )  # fmt: skip
    axes.set_xticks(range(len(grid.columns)), [f"{value:g}" for value in grid.columns])
    axes.set_yticks(range(len(grid.rows)), [f"{value:g}" for value in grid.rows])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.set_ylabel(f"{names[0]}, weight of the reconstruction" if names[0] == "\u03b1" else names[0])
    axes.set_xlabel(f"{names[1]}, weight of the discriminator" if names[1] == "\u03b2" else names[1])
    title = "mean accuracy" + ("  (\u25bc not above our FedSage+)" if (grid.mean <= plane).any() else "")
    axes.set_title(title, fontweight="normal", fontsize=8.5)


def _profiles(axes: Axes, grid: Surface, plane: float, printed: float, names: Sequence[str]) -> None:
    colours = matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, len(grid.columns)))
    for column, value in enumerate(grid.columns):
        axes.plot(
            grid.rows, grid.mean[:, column], marker="o", markersize=3.5, linewidth=1.1, color=colours[column],
            label=f"{names[1]} = {value:g}",
        )  # fmt: skip
    if np.isfinite(plane):
        axes.axhline(plane, color=WARM, linewidth=1.6)
    if np.isfinite(printed):
        axes.axhline(printed, color=PAPER, linewidth=1, linestyle=(0, (2, 2)))
    if min(grid.rows) > 0:
        axes.set_xscale("log")
    axes.set_xticks(list(grid.rows), [f"{value:g}" for value in grid.rows])
    axes.minorticks_off()
    axes.grid(axis="y")
    axes.set_xlabel(names[0])
    axes.set_ylabel("accuracy (mean over runs)")
    handles = [*axes.get_lines()[: len(grid.columns)]]
    if np.isfinite(plane):
        handles.append(Line2D([], [], color=WARM, linewidth=1.6, label="our FedSage+"))
    if np.isfinite(printed):
        handles.append(Line2D([], [], color=PAPER, linewidth=1, linestyle=(0, (2, 2)), label="FedSage+ in the paper"))
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=7.5)
