"""Figures of FedNI's paper from our scores: cost, readings, accuracy over two weights."""

from collections.abc import Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.papers._fedni_numbers import (
    FEDNI_FULL,
    FEDNI_TABLE_V,
    FEDNI_TABLE_VI,
    PhaseCost,
    as_in_the_paper,
    paper_cohort,
    phase_costs,
    printed_row,
)
from brainfed.papers._fedni_readings import Readings, find_readings
from brainfed.reporting import (
    COLD,
    INK,
    SERIES,
    WARM,
    ExperimentOutline,
    Groups,
    PageTests,
    Scored,
    ShownVariant,
    changed_settings,
    rounded,
    short,
    significant,
)
from brainfed.reporting.charts import (
    Chart,
    DrawnLine,
    Line,
    Panel,
    apart,
    axis_title,
    dot_rows,
    headed,
    lines_panel,
    note_chart,
    ordered_colour,
    sure,
    titled,
    tooltip,
)
from brainfed.reporting.tables import readable, readable_seconds

# Cost of both phases beside the paper's: operations, parameters, seconds (FedNI Table VI).

PHASES = {"inpainting": "network inpainting", "classifier": "classifier"}
PANELS = {
    "operations": ["operations: one pass of generator", "or classifier over a graph"],
    "parameters": ["parameters an institution trains", "(with the discriminator's)"],
    "seconds": ["training time of one run", "(seconds)"],
}
OURS: Groups = {"ours": ("ours", SERIES[0][0])}
TICKS = {10**power: readable(10**power).replace(".0", "") for power in range(15)}
PAPER_S = "FedNI in the paper: 7,381 features, 200 subjects an institution, a server with 8 GeForce 3090"


def cost_chart(outline: ExperimentOutline) -> Chart:
    """Two rows a variant, three panels on logarithmic axes, with the numbers at their right."""
    shown = [variant for variant in outline.variants if variant.fused]
    if not shown:
        return note_chart("no method of this experiment generates nodes")
    compared = [variant for variant in shown if as_in_the_paper(outline) and printed_row(variant) is FEDNI_FULL]
    costs = [(variant, cost) for variant in shown for cost in phase_costs(outline, variant)]
    panels: list[Panel] = []
    for key, title in PANELS.items():
        amount = readable_seconds if key == "seconds" else readable
        rows = []
        for variant, cost in costs:
            ours = float(getattr(cost, key))
            row = {
                "variant": variant.name, "method": f"{variant.title}: {PHASES[cost.phase]}", "mean": ours,
                "low": ours, "high": ours, "group": "ours", "hollow": False, "shown": amount(ours),
            }  # fmt: skip
            if variant in compared:
                printed = FEDNI_TABLE_VI[cost.phase][key]
                row |= {"low": min(ours, printed), "high": max(ours, printed), "beside": printed}
                row["shown"] = f"{amount(ours)} (paper {amount(printed)})"
            rows.append(row)
        tip = ("method", "shown")
        panels.append(
            dot_rows(pd.DataFrame(rows), title, OURS, tip, width=120, named=not panels, legend=False, ticks=TICKS)
        )
    finding = _finding(shown[0].title, *(cost for variant, cost in costs if variant is shown[0]))
    key = f"dot: ours; hollow diamond: {PAPER_S}" if compared else ""
    return headed(alt.hconcat(*panels, spacing=150 if compared else 80), finding, key)


def _finding(title: str, first: PhaseCost, second: PhaseCost) -> str:
    where = ", ".join(sorted({*first.devices, *second.devices}))
    share = 100 * first.seconds / (first.seconds + second.seconds)
    return (
        f"One run of {title} takes {readable_seconds(first.seconds)} + {readable_seconds(second.seconds)} ({where}), "
        f"{rounded(share, 0)} % of it inpainting, {'which all folds share' if first.shared else 'anew in every fold'}"
    )


# Accuracies of every reading, a panel a method with the paper's number as a line, and their distances to these.


def readings_chart(outline: ExperimentOutline, scored: Scored) -> Chart:
    """A row a reading, the nearest to the paper first."""
    readings = find_readings(outline, scored)
    if readings is None:
        return note_chart("no two readings of the paper's methods")
    colours = {variant.method: variant.colour for variant in outline.variants}
    panels = [
        titled(_method_panel(readings, method, colours[method], named=not number), title)
        for number, (method, title) in enumerate(readings.titles.items())
    ]
    distances = pd.DataFrame([
        {"reading": row.title, "mean": round(row.distance, 4), "low": 0.0, "high": round(row.distance, 4),
         "group": "", "hollow": False, "shown": short(row.distance)}
        for row in readings.rows
    ])  # fmt: skip
    panels.append(titled(_readings(distances, "mean, absolute", INK, Line(0, dash=(1, 0)), named=False), "Distance"))
    key = "bar: corrected 95 % interval; dashed line: printed in the paper; hollow: has none of the settings"
    return headed(apart(alt.hconcat(*panels, spacing=24)), readings.finding, key)


def _readings(table: pd.DataFrame, title: str, colour: str, line: Line, *, named: bool) -> Panel:
    return dot_rows(
        table, title, {"": ("", colour)}, ("reading", "shown"), width=130, row="reading", lines=[line], named=named,
        legend=False,
    )  # fmt: skip


def _method_panel(readings: Readings, method: str, colour: str, *, named: bool) -> Panel:
    rows = []
    for row in readings.rows:
        score = row.scores.get(method)
        known = score is not None and score.known
        rows.append({
            "reading": row.title, "mean": score and round(score.mean, 4), "hollow": method in row.unread, "group": "",
            "low": score and round(score.low if known else score.mean, 4),
            "high": score and round(score.high if known else score.mean, 4), "shown": score.text if score else "",
        })  # fmt: skip
    return _readings(pd.DataFrame(rows), "accuracy", colour, Line(readings.printed[method], dash=(4, 3)), named=named)


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
    places = {
        (float(variant.setting(first)), float(variant.setting(second))): variant
        for variant in outline.variants
        if variant.setting(first) is not None and variant.setting(second) is not None
    }
    rows = tuple(sorted({row for row, _ in places}))
    columns = tuple(sorted({column for _, column in places}))
    grid = tuple(tuple(places.get((row, column)) for column in columns) for row in rows)
    scores = [[scored.interval(cell.name, METRIC) if cell else None for cell in line] for line in grid]
    mean = np.array([[score.mean if score else np.nan for score in line] for line in scores])
    text = tuple(tuple(score.text if score else "" for score in line) for line in scores)
    return Surface(rows, columns, grid, mean.reshape(len(rows), len(columns)), text)


def surface_chart(outline: ExperimentOutline, scored: Scored) -> Chart:
    """Left: the grid in numbers. Right: one line for each value of the second axis, with the planes."""
    grid = surface(outline, scored)
    if not grid.mean.size:
        return note_chart("no variant of this experiment sweeps both settings")
    ours = [variant for variant in outline.variants if variant.method == PLANE]
    plane = scored.interval(ours[0].name, METRIC).mean if ours else np.nan
    printed = np.nan
    if as_in_the_paper(outline) and ours and not changed_settings(ours[0]):
        printed = FEDNI_TABLE_V[paper_cohort(outline.cohort).column][PLANE][0][0]
    names = [axis_title(axis) for axis in outline.axes]
    panels = alt.hconcat(_heat(grid, plane, names), _profiles(grid, plane, printed, names), spacing=40)
    compared = PageTests(scored, outline.variants, outline.reference)
    return headed(apart(panels), surface_finding(grid, ours[0] if ours else None, compared))


def surface_finding(grid: Surface, plane: ShownVariant | None, compared: PageTests) -> str:
    """Number of cells with the method above the plane, and of those with a significant difference."""
    cells = [cell for line in grid.variants for cell in line if cell is not None]
    scores = sorted((compared.scored.interval(cell.name, METRIC) for cell in cells), key=lambda score: score.mean)
    span = f"accuracy from {scores[0].text} to {scores[-1].text} over {len(cells)} pairs of weights"
    if plane is None:
        return f"{cells[0].method_title}: {span}"
    level = compared.scored.interval(plane.name, METRIC)
    above, names = int(np.nansum(grid.mean > level.mean)), [cell.name for cell in cells]
    tests = compared.differences(plane.name, names, METRIC)
    count = sum(significant(p) and difference.mean > 0 for difference, p in tests.values())
    counted = compared.counted(plane.name, names, METRIC)
    surely = f"{count} of them significantly" if count else "none significantly"
    surely += f" (Holm-corrected {counted})" if counted else ""
    if not any(np.isfinite(p) for _, p in tests.values()):
        surely = "too few runs to test it"
    return f"{cells[0].method_title} is above {plane.title} ({level.text}) at {above} of {len(cells)} pairs, {surely}"


def _heat(grid: Surface, plane: float, names: Sequence[str]) -> Chart:
    cells = pd.DataFrame([
        {
            "row": f"{grid.rows[row]:g}", "column": f"{grid.columns[column]:g}", "mean": round(float(value), 4),
            "shown": grid.text[row][column] + (" \u25bc" if value <= plane else ""),
        }
        for (row, column), value in np.ndenumerate(grid.mean) if np.isfinite(value)
    ])  # fmt: skip
    weights = {"\u03b1": ", weight of the reconstruction", "\u03b2": ", weight of the discriminator"}
    down, across = (name + weights.get(name, "") for name in names)
    y = alt.Y("row:N", sort=[f"{value:g}" for value in reversed(grid.rows)], title=down)
    x = alt.X("column:N", sort=[f"{value:g}" for value in grid.columns], title=across, axis=alt.Axis(labelAngle=0))
    low, high = float(np.nanmin(grid.mean)), float(np.nanmax(grid.mean))
    base = alt.Chart(cells).encode(x=x, y=y, tooltip=tooltip("row", "column", "shown"))
    scale = alt.Scale(domain=[low, high], range=["#eef2f7", COLD])
    rects = base.mark_rect().encode(color=alt.Color("mean:Q", scale=scale, legend=None))
    middle = low + 0.6 * (high - low)
    texts = base.mark_text().encode(
        text="shown:N",
        color=alt.condition(f"datum.mean > {round(middle, 6)}", alt.value("white"), alt.value("#1d2228")),
    )
    note = "\u25bc: not above our FedSage+" if (grid.mean <= plane).any() else ""
    sides = {"width": 58 * len(grid.columns), "height": 46 * len(grid.rows)}
    return titled(alt.layer(rects, texts).properties(**sides), "mean accuracy", note)


def _profiles(grid: Surface, plane: float, printed: float, names: Sequence[str]) -> Panel:
    lines = [
        DrawnLine(
            f"{names[1]} = {value:g}", ordered_colour(column, len(grid.columns)),
            [(row, sure(float(mean))) for row, mean in zip(grid.rows, grid.mean[:, column], strict=True)],
            SERIES[column % len(SERIES)][1],
        )
        for column, value in enumerate(grid.columns)
    ]  # fmt: skip
    ends = grid.rows[0], grid.rows[-1]
    for title, value, colour, dash in (
        ("our FedSage+", plane, WARM, (1, 0)),
        ("FedSage+ in the paper", printed, INK, (2, 2)),
    ):
        if np.isfinite(value):
            lines.append(DrawnLine(title, colour, [(end, sure(value)) for end in ends], dash=dash))
    ticks = {row: f"{row:g}" for row in grid.rows}
    return lines_panel(
        lines, names[0], "accuracy (mean over runs)", width=330, height=240, ticks=ticks, log=min(grid.rows) > 0
    )
