"""Figures of swept settings and of parts left out, with the numbers that a paper prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from brainfed.federation.settings import share_of
from brainfed.reporting.figures.interval_rows import interval_row, paint_labels, text_column
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    PAPER,
    SERIES,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
    paper_mark,
)
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import signed
from brainfed.reporting.scored import PageTests, Scored, read_splits, significant
from brainfed.reporting.tables.robustness import poison_finding, read_drops
from brainfed.reporting.variants import ShownVariant, setting_in_words
from brainfed.runtime.artefacts import canonical_json

# Accuracies that a paper prints, as its figures mark them.

FloatVector = NDArray[np.float64]
Style = dict[str, Any]


@dataclass(frozen=True)
class PrintedAccuracy:
    """A paper's accuracy of one variant.

    Attributes:
        value: the accuracy.
        source: `FedNI in the paper, Table V`, for the method of a paper as it is; empty for any other variant.
    """

    value: float
    source: str = ""


Printed = Mapping[str, PrintedAccuracy]
"""Variant -> what a paper prints; a variant without a printed number is absent."""
NOTHING_PRINTED: Printed = MappingProxyType({})


# Variants of a sweep as lines: their groups, and their positions on the swept axis.


@dataclass(frozen=True)
class Series:
    """Variants that differ in the swept setting alone, in ascending order of it."""

    title: str
    values: tuple[Any, ...]
    variants: tuple[ShownVariant, ...]

    @property
    def swept(self) -> bool:
        """Whether it has more than one point."""
        return len(self.variants) > 1


def sweep_series(variants: Sequence[ShownVariant], axis: str) -> list[Series]:
    """One line for each group of variants that differ in `axis` alone; a lone variant is a line of one point."""
    groups: dict[str, list[ShownVariant]] = {}
    for variant in variants:
        groups.setdefault(_rest(variant, axis), []).append(variant)
    swept = [group[0].method for group in groups.values() if len(group) > 1]
    found = []
    for group in groups.values():
        ordered = sorted(group, key=lambda variant: _place(variant.setting(axis)))
        title = group[0].title
        if len(group) > 1:
            title = group[0].method_title if swept.count(group[0].method) == 1 else group[0].unswept_title
        found.append(Series(title, tuple(variant.setting(axis) for variant in ordered), tuple(ordered)))
    return found


def axis_title(axis: str) -> str:
    """`k` for `graph.k`, `local epochs` for `local_epochs`."""
    return setting_in_words(axis.rpartition(".")[2], "").removesuffix(" = ")


def _rest(variant: ShownVariant, axis: str) -> str:
    stage, _, name = axis.rpartition(".")
    settings: Mapping[str, Any] = {**variant.stages, "": variant.settings}
    kept = {
        part: {key: value for key, value in held.items() if (part, key) != (stage, name)}
        for part, held in settings.items()
    }
    has = variant.setting(axis) is not None
    return canonical_json([variant.method, kept, "" if has else variant.name])


def _place(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float)
    return (0, float(value), "") if number else (1, 0.0, str(value))


# Effect of each part: accuracy and AUC of variants, with the paper's number for each (FedNI Fig. 2 to 4).

METRICS = (("accuracy", "accuracy"), ("auc", "AUC"))


def ablation_figure(outline: ExperimentOutline, scored: Scored, printed: Printed = NOTHING_PRINTED) -> Figure:
    """A row a variant in the order of the config; numbers to the right: mean, difference to the reference."""
    shown = outline.variants
    others = [variant.name for variant in shown if variant.name != outline.reference]
    has_printed = any(variant.name in printed for variant in shown)
    compared = PageTests(scored, shown, outline.reference)
    figure = new_figure(WIDE, 1.35 + 0.31 * len(shown) + 0.2 * has_printed)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (metric, title) in zip(panels, METRICS, strict=True):
        differences = compared.differences(outline.reference, others, metric) if others else {}
        texts = []
        for row, variant in enumerate(shown):
            found = scored.interval(variant.name, metric)
            interval_row(axes, row, found, variant.colour, size=6)
            if variant.name in printed and metric == "accuracy":
                value = printed[variant.name].value
                axes.plot(value, row + 0.24, "D", markersize=5.5, markerfacecolor="none", markeredgecolor=PAPER)
            text = found.text
            if variant.name in differences:
                difference, p = differences[variant.name]
                text += f"   {signed(difference.mean, difference.digits)}{' *' if significant(p) else ''}"
            texts.append(text)
        axes.axvline(scored.interval(outline.reference, metric).mean, color=INK, linewidth=0.8, alpha=0.5)
        axes.set_xlabel(f"{title}, mean over institutions and runs")
        axes.margins(x=0.08)
        axes.grid(axis="x")
        text_column(axes, texts, range(len(texts)), head=f"mean    minus {_short(outline)}")
    horizontal_rows(panels[0], [variant.title for variant in shown])
    paint_labels(panels[0], [variant.colour for variant in shown])
    panels[1].tick_params(axis="y", length=0)
    panels[1].spines["left"].set_visible(False)
    headed(figure, ablation_finding(outline, scored))
    reference = Line2D([], [], color=INK, alpha=0.5, linewidth=0.8, label=f"the mean of {_short(outline)}")
    ours = Line2D([], [], marker="o", color=FAINT, label="ours, with its corrected 95 % interval")
    key_below(figure, [ours, reference, *([paper_mark("printed in the paper")] if has_printed else [])])
    return figure


def ablation_finding(outline: ExperimentOutline, scored: Scored) -> str:
    """The variants that differ significantly from the reference after correction, in one line."""
    titles = {variant.name: variant.title for variant in outline.variants if variant.name != outline.reference}
    if not titles:
        return f"{_short(outline)} has nothing to be compared with"
    compared = PageTests(scored, outline.variants, outline.reference)
    outcomes = {}
    for metric, name in METRICS:
        tests = compared.differences(outline.reference, list(titles), metric)
        if not any(np.isfinite(p) for _, p in tests.values()):
            return f"Too few runs to test anything against {_short(outline)}"
        above = [titles[variant] for variant, (found, p) in tests.items() if significant(p) and found.mean > 0]
        below = [titles[variant] for variant, (found, p) in tests.items() if significant(p) and found.mean < 0]
        outcomes[name.capitalize() if name.islower() else name] = _outcome(above, below, _short(outline))
    if len(set(outcomes.values())) == 1:
        return f"Accuracy and AUC: {outcomes['AUC']}"
    return "; ".join(f"{name}: {outcome}" for name, outcome in outcomes.items())


def _outcome(above: Sequence[str], below: Sequence[str], reference: str) -> str:
    if not above and not below:
        return f"nothing differs significantly from {reference}"
    said = [f"{_counted(above)} significantly above {reference}"] if above else []
    if below:
        said.append(f"{_counted(below)} significantly below" + ("" if above else f" {reference}"))
    return ", ".join(said)


def _counted(titles: Sequence[str]) -> str:
    return " and ".join(titles) if len(titles) < 3 else f"{len(titles)} variants"


def _short(outline: ExperimentOutline) -> str:
    return outline.variant(outline.reference).title


# Accuracy and AUC against one swept setting (FedNI Fig. 8: the number of neighbours k).

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
