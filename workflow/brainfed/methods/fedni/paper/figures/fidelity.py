"""Fidelity of generated nodes: counts, features, phenotypes and edges against their baselines."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from brainfed.methods.fedni.paper.fidelity import (
    AGREEMENT_ROWS,
    COSINE_ROWS,
    EDGE_ROWS,
    Measured,
    ShownFidelity,
    read_fidelity,
)
from brainfed.reporting.figures.interval_rows import text_column
from brainfed.reporting.figures.style import (
    FAINT,
    RULE,
    SERIES,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded, signed

FEWEST_PARENTS = 10
"""Smallest number of parents for a normal interval."""

Reads = Callable[[ShownFidelity], Mapping[str, Measured]]


def fidelity_figure(outline: ExperimentOutline) -> Figure:
    """Above: calibration and edges; below: cosine and phenotypes. Filled: generated; hollow: baselines."""
    shown = read_fidelity(outline.variants)
    if not shown:
        return note_figure("fidelity is known under `graph.scope: global_cut` alone")
    figure = new_figure(WIDE, 6.6)
    grid = figure.subplots(3, 2, height_ratios=(1.55, 1, 1))
    _calibration(grid[0, 0], shown)
    _rows(grid[0, 1], shown, EDGE_ROWS, lambda one: {row: Measured(one.edges[row], np.nan) for row in EDGE_ROWS})
    grid[0, 1].set_title("Joined to the right subjects?")
    grid[0, 1].set_xlabel("F1 of recovered edges")
    _rows(grid[1, 0], shown, COSINE_ROWS, lambda one: one.cosine)
    grid[1, 0].set_title("Features like theirs?")
    grid[1, 0].set_xlabel("cosine with the true missing neighbours")
    _rows(grid[1, 1], shown, COSINE_ROWS, lambda one: one.centred)
    grid[1, 1].set_title("... beyond the institution's mean?")
    grid[1, 1].set_xlabel("centred cosine (0: knows that mean alone)")
    for axes in grid[1:, 1]:
        axes.tick_params(labelleft=False)
    for axes, name, reads in ((grid[2, 0], "sex", _sex), (grid[2, 1], "age", _age)):
        _rows(axes, shown, AGREEMENT_ROWS, reads)
        axes.set_title(f"Of the right {name}?")
        axes.set_xlabel("share of pairs that agree")
    named = next((one for one in shown if one.variant.name == outline.reference), shown[0])
    headed(figure, fidelity_finding(named))
    key = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=f"{one.variant.title} (hollow: its baselines)")
        for one, (colour, marker) in zip(shown, SERIES, strict=False)
    ]
    key_below(figure, key, columns=2)
    return figure


def fidelity_finding(found: ShownFidelity) -> str:
    """Whether generated features beat the mean of the visible neighbours."""
    gain = found.gain
    if not gain.known or not np.isfinite(gain.reach) or found.parents < FEWEST_PARENTS:
        number = "none" if found.parents == 0 else f"only {found.parents}"
        return f"{found.variant.title}: {number} of the subjects got generated neighbours, too few to judge"
    spread = f"{signed(gain.mean)} [{signed(gain.mean - gain.reach)}, {signed(gain.mean + gain.reach)}]"
    nearer = "closer to" if gain.mean > 0 else "further from"
    if abs(gain.mean) <= gain.reach:
        nearer = "not shown to be closer to"
    return (
        f"{found.variant.title}: generated features are {nearer} the true missing neighbours than the mean of the "
        f"visible ones (centred cosine {spread}, {found.parents} subjects)"
    )


def _sex(found: ShownFidelity) -> Mapping[str, Measured]:
    return found.sex


def _age(found: ShownFidelity) -> Mapping[str, Measured]:
    return found.age


def _calibration(axes: Axes, shown: Sequence[ShownFidelity]) -> None:
    points = [point for one in shown for point in one.calibration]
    right = 1.15 * max([0.5, *(point.predicted for point in points)])
    top = 1.12 * max([0.5, *(point.true for point in points)])
    end = min(right, top)
    axes.plot([0, end], [0, end], color=RULE, linewidth=0.9)
    axes.annotate("exact", (end, end), (-2, 3), textcoords="offset points", ha="right", color=FAINT, fontsize=7.5)
    for one, (colour, marker) in zip(shown, SERIES, strict=False):
        axes.errorbar(
            [point.predicted for point in one.calibration], [point.true for point in one.calibration],
            yerr=np.nan_to_num([point.reach for point in one.calibration]), color=colour, marker=marker, markersize=5,
            linewidth=1, elinewidth=1,
        )  # fmt: skip
    found = " \u00b7 ".join(rounded(one.correlation, 2) for one in shown)
    baseline = " \u00b7 ".join(rounded(one.degree_correlation, 2) for one in shown)
    axes.set(xlim=(0, right), ylim=(0, top))
    axes.set_title("How many are missing?")
    axes.set_xlabel(f"predicted number\nrank correlation {found} (number of visible ones: {baseline})")
    axes.set_ylabel("true number")
    axes.grid(axis="y")


def _rows(axes: Axes, shown: Sequence[ShownFidelity], rows: Mapping[str, str], reads: Reads) -> None:
    texts = []
    for place, row in enumerate(rows):
        said = []
        for number, one in enumerate(shown):
            colour, marker = SERIES[number % len(SERIES)]
            found = reads(one)[row]
            y = place + 0.22 * (number - (len(shown) - 1) / 2)
            said.append(rounded(found.mean, 2) if found.known else "\u2013")
            if not found.known:
                continue
            if np.isfinite(found.reach):
                axes.plot([found.mean - found.reach, found.mean + found.reach], [y, y], color=colour, alpha=0.55)
            axes.plot(
                found.mean,
                y,
                marker,
                color=colour,
                markersize=5.5,
                markerfacecolor=colour if row == "generated" else "white",
            )
        texts.append(" \u00b7 ".join(said))
    horizontal_rows(axes, [rows[row].removeprefix("baseline: ") for row in rows])
    axes.margins(x=0.1)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.0), max(high, 0.05))
    axes.grid(axis="x")
    text_column(axes, texts, range(len(texts)))
