"""Accuracy and AUC against one swept setting (FedNI Fig. 8: the number of neighbours k)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from brainfed.federation.robustness_settings import share_of
from brainfed.reporting.figures.paper.ablation import METRICS
from brainfed.reporting.figures.paper.printed import NOTHING_PRINTED, Printed
from brainfed.reporting.figures.paper.sweep_series import Series, axis_title, sweep_series
from brainfed.reporting.figures.style import (
    FAINT,
    PAPER,
    SERIES,
    WIDE,
    headed,
    key_below,
    new_figure,
    note_figure,
    paper_mark,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.scored import Scored, read_splits, significant
from brainfed.reporting.tables.drops import poison_finding, read_drops

FloatVector = NDArray[np.float64]
Style = dict[str, Any]
POISON_AXIS = "attacked"
UNITS = {"graph.k": " (neighbours of a subject)"}
"""Swept setting -> what its values count."""
FAR_APART = 50
"""Smallest ratio of the largest to the smallest value for a logarithmic axis."""
DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (2, 2)))


def sweep_figure(outline: ExperimentOutline, scored: Scored, printed: Printed = NOTHING_PRINTED) -> Figure:
    """A line with intervals a method; methods without the setting are level lines."""
    axis = outline.axes[0]
    series = sweep_series(outline.variants, axis)
    swept = [one for one in series if one.swept]
    if not swept:
        return note_figure(f"no variant of this experiment sweeps {axis_title(axis)}")
    level = [one for one in series if not one.swept]
    values = sorted({value for one in swept for value in one.values}, key=lambda value: (str(type(value)), value))
    styles = _styles(swept)
    own = next((one for one in outline.variants if one.name in printed and printed[one.name].source), None)
    many = int(read_splits(outline)["institution"].nunique())
    figure = new_figure(WIDE, 3.35 + 0.16 * (-(-len(series) // 3)))
    for axes, (metric, title) in zip(figure.subplots(1, 2), METRICS, strict=True):
        places = _frame(axes, values)
        for number, one in enumerate(swept):
            _line(axes, one, places, scored, metric, styles[number], number - (len(swept) - 1) / 2)
        if axis == POISON_AXIS:
            axes.axhline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
            axes.set_xticks(
                list(places.values()), [f"{share_of(float(str(value)), many)} of {many}" for value in values]
            )
        for number, one in enumerate(level):
            mean = scored.interval(one.variants[0].name, metric).mean
            axes.axhline(mean, color=FAINT, linestyle=DASHES[number % len(DASHES)], linewidth=1.1)
        if own is not None and metric == "accuracy":
            place, value = places[own.setting(axis)], printed[own.name].value
            axes.plot(place, value, "D", markersize=5.5, markerfacecolor="none", markeredgecolor=PAPER)
        axes.set_xlabel("poisoned institutions" if axis == POISON_AXIS else axis_title(axis) + UNITS.get(axis, ""))
        axes.set_ylabel(f"{title} (mean over runs)")
    headed(figure, _finding(outline, scored, swept, axis, many))
    key = _key(swept, level, styles)
    if own is not None:
        key.append(paper_mark(f"{printed[own.name].source} ({axis_title(axis)} = {_shown(own.setting(axis))})"))
    key_below(figure, key)
    return figure


def _finding(outline: ExperimentOutline, scored: Scored, swept: Sequence[Series], axis: str, institutions: int) -> str:
    """What poison takes away, or else the highest point of all lines."""
    if axis == POISON_AXIS:
        return poison_finding(read_drops(outline.variants, scored, institutions), institutions)
    best = max(swept, key=lambda one: max(scored.interval(each.name, "accuracy").mean for each in one.variants))
    return sweep_finding(best, PageTests(scored, outline.variants, outline.reference), axis)


def sweep_finding(series: Series, compared: PageTests, axis: str) -> str:
    """Position of the highest point of a line, and its difference from the shipped value or the lowest one."""
    name = axis_title(axis)
    scores = [compared.scored.interval(variant.name, "accuracy") for variant in series.variants]
    best = int(np.argmax([score.mean for score in scores]))
    usual = series.variants[0].shipped.get(axis)
    base = series.values.index(usual) if usual in series.values else 0
    best_value = f"{series.title} is most accurate at {name} = {_shown(series.values[best])} ({scores[best].text})"
    reference = series.variants[base].name
    others = [variant.name for variant in series.variants if variant.name != reference]
    tests = compared.differences(reference, others, "accuracy")
    if not any(np.isfinite(p) for _, p in tests.values()):
        return f"{best_value}; too few runs to test it"
    count = sum(significant(p) for _, p in tests.values())
    counted = compared.counted(reference, others, "accuracy")
    usually = f"{name} = {_shown(series.values[base])}" + (f" (Holm-corrected {counted})" if counted else "")
    if not count:
        return f"{best_value}; no value differs significantly from {usually}"
    return (
        f"{best_value}; {count} of {len(others)} values differ{'s' if count == 1 else ''} significantly from {usually}"
    )


def _frame(axes: Axes, values: Sequence[object]) -> dict[object, float]:
    """Ticks at the swept values; the place of each."""
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if len(numbers) == len(values):
        places = dict(zip(values, numbers, strict=True))
        if numbers[0] > 0 and numbers[-1] / numbers[0] >= FAR_APART:
            axes.set_xscale("log")
    else:
        places = {value: float(index) for index, value in enumerate(values)}
    axes.set_xticks(list(places.values()), [_shown(value) for value in values])
    axes.minorticks_off()
    axes.grid(axis="y")
    return places


def _line(
    axes: Axes, one: Series, places: dict[object, float], scored: Scored, metric: str, style: Style, steps: float
) -> None:
    found = [scored.interval(variant.name, metric) for variant in one.variants]
    x = _beside(axes, np.array([places[value] for value in one.values]), steps)
    mean = np.array([score.mean for score in found])
    reach = np.nan_to_num(np.array([[score.mean - score.low, score.high - score.mean] for score in found])).T
    axes.errorbar(x, mean, yerr=reach, markersize=5, linewidth=1.4, elinewidth=1.1, ecolor=style["color"], **style)


def _styles(swept: Sequence[Series]) -> list[Style]:
    """Colour and mark of every line. A server that defends itself has those of its method, and a dashed line.

    Other lines whose colour and mark come again are dashed too.
    """
    methods = list(dict.fromkeys(one.variants[0].method for one in swept))
    defended = [one.variants[0].is_defended for one in swept]
    styles = []
    for number, (one, defends) in enumerate(zip(swept, defended, strict=True)):
        place = methods.index(one.variants[0].method) if any(defended) else number
        colour, marker = SERIES[place % len(SERIES)]
        dashed = {"linestyle": "--"} if defends or place >= len(SERIES) else {}
        styles.append({"color": colour, "marker": marker} | dashed)
    return styles


def _shown(value: object) -> str:
    """2 for 2.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _beside(axes: Axes, x: FloatVector, steps: float) -> FloatVector:
    """Points moved sideways by some hundredths of the line's length, so that intervals do not hide each other."""
    if axes.get_xscale() == "log":
        return np.asarray(x * (x[-1] / x[0]) ** (0.012 * steps), dtype=np.float64)
    return np.asarray(x + 0.012 * steps * (x[-1] - x[0]), dtype=np.float64)


def _key(swept: Sequence[Series], level: Sequence[Series], styles: Sequence[Style]) -> list[Line2D]:
    lines = [Line2D([], [], markersize=5, label=one.title, **style) for one, style in zip(swept, styles, strict=True)]
    return lines + [
        Line2D([], [], color=FAINT, linestyle=DASHES[number % len(DASHES)], label=one.title)
        for number, one in enumerate(level)
    ]
