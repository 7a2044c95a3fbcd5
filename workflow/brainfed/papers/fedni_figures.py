"""Figures of FedNI's paper from our scores: cost, readings, accuracy over two weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from brainfed.papers.fedni_numbers import (
    FEDNI_FULL,
    FEDNI_TABLE_V,
    FEDNI_TABLE_VI,
    PhaseCost,
    as_in_the_paper,
    paper_cohort,
    phase_costs,
    printed_row,
)
from brainfed.papers.fedni_readings import Readings, find_readings
from brainfed.reporting.figures.interval_rows import interval_row, text_column
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    PAPER,
    SERIES,
    WARM,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
    paper_mark,
)
from brainfed.reporting.figures.sweeps import axis_title
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded, short
from brainfed.reporting.scored import PageTests, Scored, significant
from brainfed.reporting.tables.exchanges import readable, readable_seconds
from brainfed.reporting.variants import ShownVariant, changed_settings

# Cost of both phases beside the paper's: operations, parameters, seconds (FedNI Table VI).

PHASES = {"inpainting": "network inpainting", "classifier": "classifier"}
PANELS = {
    "operations": "operations: one pass of generator\nor classifier over a graph",
    "parameters": "parameters an institution trains\n(with the discriminator's)",
    "seconds": "training time of one run\n(seconds)",
}


def cost_figure(outline: ExperimentOutline) -> Figure:
    """Two rows a variant, three panels on logarithmic axes, every number next to its mark."""
    shown = [variant for variant in outline.variants if variant.fused]
    if not shown:
        return note_figure("no method of this experiment generates nodes")
    compared = [variant for variant in shown if as_in_the_paper(outline) and printed_row(variant) is FEDNI_FULL]
    costs = [(variant, cost) for variant in shown for cost in phase_costs(outline, variant)]
    figure = new_figure(WIDE, 1.45 + 0.52 * len(costs))
    panels = figure.subplots(1, 3, sharey=True)
    for axes, (key, title) in zip(panels, PANELS.items(), strict=True):
        for row, (variant, cost) in enumerate(costs):
            printed = FEDNI_TABLE_VI[cost.phase][key] if variant in compared else None
            _marks(axes, row, key, float(getattr(cost, key)), printed)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: readable(value)))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(title)
        axes.margins(x=0.3)
        axes.grid(axis="x")
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    horizontal_rows(panels[0], [f"{variant.title}:\n{PHASES[cost.phase]}" for variant, cost in costs])
    headed(figure, _finding(shown[0].title, [cost for variant, cost in costs if variant is shown[0]]))
    ours = Line2D([], [], marker="o", linestyle="", color=SERIES[0][0], label="ours")
    paper = paper_mark("FedNI in the paper: 7,381 features, 200 subjects an institution, a server with 8 GeForce 3090")
    key_below(figure, [ours, paper] if compared else [ours])
    return figure


def _marks(axes: Axes, row: float, key: str, ours: float, printed: float | None) -> None:
    """Ours and the paper's, the numbers of ours above and of the paper's below the row."""
    axes.plot(ours, row, "o", color=SERIES[0][0], markersize=6.5)
    _number(axes, ours, row, key, SERIES[0][0], 7)
    if printed is not None:
        axes.plot([ours, printed], [row, row], color=SERIES[0][0], alpha=0.4, linewidth=1)
        axes.plot(printed, row, "D", markersize=5.5, markerfacecolor="white", markeredgecolor=PAPER)
        _number(axes, printed, row, key, INK, -13)


def _number(axes: Axes, value: float, row: float, key: str, colour: str, up: float) -> None:
    text = readable_seconds(value) if key == "seconds" else readable(value)
    axes.annotate(text, (value, row), (0, up), textcoords="offset points", ha="center", color=colour, fontsize=7.5)


def _finding(title: str, costs: Sequence[PhaseCost]) -> str:
    first, second = costs
    where = ", ".join(sorted({device for cost in costs for device in cost.devices}))
    share = 100 * first.seconds / (first.seconds + second.seconds)
    return (
        f"One run of {title} takes {readable_seconds(first.seconds)} + {readable_seconds(second.seconds)} ({where}), "
        f"{rounded(share, 0)} % of it inpainting, {'which all folds share' if first.shared else 'anew in every fold'}"
    )


# Accuracies of every reading, a panel a method with the paper's number as a line, and their distances to these.


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


# Accuracy over two weights of the loss, and the plane of FedSage+ below or above it (FedNI Fig. 6: alpha x beta).

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
