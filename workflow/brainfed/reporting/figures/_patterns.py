"""The strongest connections of the patterns of linear models: on the brain, and with their spread over runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from nilearn.plotting import plot_connectome
from numpy.typing import NDArray

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation import IMPORTANCE_COLUMNS as VIEW_COLUMNS
from brainfed.evaluation import (
    PLANTED_COLUMNS,
    STRONGEST_COLUMNS,
    no_rows,
    planted_connections,
    planted_table,
    read_parts,
    read_patterns,
    strongest_table,
    view_importance,
)
from brainfed.reporting import COLD, FAINT, INK, WARM, ShownVariant
from brainfed.reporting.charts import note_chart, save_chart
from brainfed.reporting.figures._connectivity import region_places
from brainfed.reporting.figures._style import WIDE, drawing, name_sides, placed_figure, save_svg
from brainfed.reporting.tables import ShownPattern, end_name, shown_patterns
from brainfed.runtime import write_tsv

HEIGHT, LEFT, BRAIN = 5.1, 3.6, 0.38
"""Inches of a row, inches left of the dots, width of the brain in the figure."""
ROWS = 3
"""Largest number of rows."""
LONGEST = 22
"""Characters of a region's name."""


def patterns_figure(table: pd.DataFrame, variants: Sequence[ShownVariant], words: ClassWords) -> Figure | None:
    """One row a variant: its strongest connections on a glass brain, and beside it their means and deviations.

    Of several views the first with connections is drawn, or the first; of more than two classes, every class of the
    first variant. Regions without places have no brain. None without a linear model whose score varies.

    Args:
        table: `strongest_patterns.COLUMNS`.
        variants: in the order of the figure.
    """
    drawn = _drawn(shown_patterns(table, variants, words), several=words.count > 2)
    if not drawn:
        return None
    figure = placed_figure(HEIGHT * len(drawn))
    for row, pattern in enumerate(drawn):
        _row(figure, pattern, (len(drawn) - 1 - row) / len(drawn), 1 / len(drawn))
    return figure


def _drawn(shown: Sequence[ShownPattern], *, several: bool) -> list[ShownPattern]:
    """One view a variant, or one a class of the first variant."""
    kept: dict[str, ShownPattern] = {}
    for pattern in sorted(shown, key=lambda pattern: not pattern.connections):
        kept.setdefault(pattern.words.many[1] if several else pattern.variant.name, pattern)
    order = {id(pattern): place for place, pattern in enumerate(shown)}
    first = [pattern for pattern in kept.values() if not several or pattern.variant == shown[0].variant]
    return sorted(first, key=lambda pattern: order[id(pattern)])[:ROWS]


def _row(figure: Figure, pattern: ShownPattern, bottom: float, height: float) -> None:
    def axes(left: float, low: float, width: float, tall: float) -> Axes:
        return figure.add_axes((left, bottom + height * low, width, height * tall))

    view = f", {pattern.view}" if pattern.view else ""
    what = "connections" if pattern.connections else "measures"
    title = f"{pattern.variant.title}{view}: the {what} that change most with the score for {pattern.words.many[1]}"
    figure.text(0.01, bottom + 0.965 * height, title, fontweight="bold", fontsize=9.5, va="top")
    left = LEFT + 2.45 if pattern.located else 3.4
    if pattern.located:
        _brain_of_pattern(figure, axes(0.0, 0.51, BRAIN, 0.40), pattern, "z")
        _brain_of_pattern(figure, axes(0.0, 0.06, BRAIN, 0.38), pattern, "y")
    _dots(axes(left / WIDE, 0.12, 1 - (left + 0.15) / WIDE, 0.78), pattern)


def _brain_of_pattern(figure: Figure, axes: Axes, pattern: ShownPattern, view: str) -> None:
    coordinates, ends = _nodes(pattern.rows)
    signs = np.sign(pattern.rows["mean"].to_numpy())
    raised, lowered = (_adjacency(ends, chosen, len(coordinates)) for chosen in (signs > 0, signs < 0))
    shared: dict[str, Any] = {
        "node_size": 14, "node_color": INK, "edge_vmin": 0, "edge_vmax": 1, "colorbar": False
    }  # fmt: skip
    display = plot_connectome(
        raised, coordinates, edge_cmap=ListedColormap([WARM]), display_mode=view, figure=figure, axes=axes,
        annotate=False, edge_kwargs={"linewidth": 1.8}, **shared,
    )  # fmt: skip
    dashed = {"linewidth": 1.8, "linestyle": (0, (2.2, 1.2))}
    display.add_graph(lowered, coordinates, edge_cmap=ListedColormap([COLD]), edge_kwargs=dashed, **shared)
    name_sides(axes, view)


def _nodes(rows: pd.DataFrame) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Places (N, 3) of the regions that the rows connect, and the two positions (rows, 2) of every row."""
    names = sorted({*rows["from"], *rows["to"]})
    position = {name: number for number, name in enumerate(names)}
    ends = np.array([[position[name] for name in rows[end]] for end in ("from", "to")]).T
    coordinates = np.empty((len(names), 3))
    for column, end in enumerate(("from", "to")):
        coordinates[ends[:, column]] = rows[[f"{end}_{axis}" for axis in "xyz"]].to_numpy(dtype=np.float64)
    return coordinates, ends


def _adjacency(ends: NDArray[np.int64], kept: NDArray[np.bool_], nodes: int) -> NDArray[np.float64]:
    matrix = np.zeros((nodes, nodes))
    for first, second in ends[kept]:
        matrix[first, second] = matrix[second, first] = 1.0
    return matrix


def _dots(axes: Axes, pattern: ShownPattern) -> None:
    rows, many = pattern.rows, pattern.words.many[1]
    mean, deviation = rows["mean"].to_numpy(), np.nan_to_num(rows["sd"].to_numpy(dtype=np.float64))
    raised = mean > 0
    place = np.arange(len(rows)) + 1.0 + np.where(raised, 0.0, 1.6)
    axes.axvline(0, color=FAINT, linewidth=0.8)
    for own, colour, marker, filled in ((raised, WARM, "o", True), (~raised, COLD, "s", False)):
        axes.errorbar(
            mean[own], place[own], xerr=deviation[own], fmt=marker, markersize=4.5, color=colour, elinewidth=1.1,
            markerfacecolor=colour if filled else "white",
        )  # fmt: skip
    axes.set_yticks(place, _names(rows, connections=pattern.connections), fontsize=7)
    axes.set_ylim(len(rows) + 2.4, -0.4)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for own, word, colour in ((raised, "raised", WARM), (~raised, "lowered", COLD)):
        if own.any():
            axes.annotate(
                f"{word} in {many}", (0, float(place[own][0]) - 0.85), xycoords=("axes fraction", "data"),
                color=colour, fontweight="bold", fontsize=8, va="center",
            )  # fmt: skip
    axes.grid(visible=True, axis="x")
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.set_xlabel("change for one standard deviation of the score\n(mean and deviation over runs)")


def _names(rows: pd.DataFrame, *, connections: bool) -> list[str]:
    first, second = (zip(rows[end].astype(str), rows[f"{end}_x"], strict=True) for end in ("from", "to"))
    if not connections:
        return [end_name(name, x, 2 * LONGEST) for name, x in first]
    ends = ([end_name(name, x, LONGEST) for name, x in pairs] for pairs in (first, second))
    return [" \u2013 ".join(both) for both in zip(*ends, strict=True)]


def draw_patterns(
    variants: Sequence[ShownVariant],
    files: Sequence[str],
    predictions: Sequence[str],
    outputs: Mapping[str, str],
    *,
    atlas: tuple[str, str | None] | None,
    truth: str | None,
    seed: int,
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the tables called table, planted and views, and the SVG called patterns.

    Args:
        variants: linear models of the experiment.
        files: their patterns, every repeat of the first variant first.
        predictions: their predictions, in the same order.
        outputs: name -> path.
        atlas: parcellation image and region table (None: named by number), where the regions have a place.
        truth: planted connections of a simulated cohort.
        seed: of the permutations of views.
    """
    repeats = len(files) // len(variants)
    places = region_places(*atlas) if atlas is not None else {}
    planted = planted_connections(truth, words.target) if truth else {}
    strongest, scored, views = [no_rows(STRONGEST_COLUMNS)], [no_rows(PLANTED_COLUMNS)], [no_rows(VIEW_COLUMNS)]
    for number, variant in enumerate(variants):
        own = slice(number * repeats, (number + 1) * repeats)
        patterns = read_patterns(files[own])
        if patterns is None:
            continue
        strongest.append(strongest_table(variant.name, patterns, places))
        scored.append(planted_table(variant.name, patterns, planted))
        parts = [read_parts(*pair) for pair in zip(files[own], predictions[own], strict=True)]
        views += [view_importance(variant.name, used, seed)] if (used := [part for part in parts if part]) else []
    table = _joined(strongest)
    write_tsv(outputs["table"], table, float_format="%.6g")
    write_tsv(outputs["planted"], _joined(scored), float_format="%.6g")
    write_tsv(outputs["views"], _joined(views), float_format="%.6g")
    with drawing():
        figure = patterns_figure(table, variants, words)
        if figure is None:
            save_chart(note_chart("No linear model here has a score that varies."), outputs["patterns"])
        else:
            save_svg(figure, outputs["patterns"])


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of all tables; with none, the first table, which has the columns."""
    filled = [table for table in tables if len(table)]
    return pd.concat(filled, ignore_index=True) if filled else tables[0]
