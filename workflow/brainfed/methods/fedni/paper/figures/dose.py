"""Scores of simulated cohorts against their dose, for completed and cut graphs."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator, PercentFormatter

from brainfed.methods.fedni.paper.dose import (
    LOWER,
    UPPER,
    Dose,
    by_cap,
    completing,
    dose_finding,
    limit_words,
    node_words,
    of_method,
    read_doses,
)
from brainfed.reporting.figures.paper.sweep_series import axis_title
from brainfed.reporting.figures.style import FAINT, INK, MALE, SERIES, WIDE, headed, key_below, new_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant

MARKS = (*SERIES, (MALE, "X"))
LEVELS = ((0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (4, 2)))
SHARES = (-1.0, 2.0)
"""Limits of the shares' axis: the interval of a small gap is unbounded."""
MEANING = {"simulate.group_agreement": "group agreement\n(0: groups say nothing of the diagnosis, 1: each shares one)"}
NO_GAP = "no certain gap"
KEYS = 3
"""Columns of the key."""
TITLE = 42
"""Letters in a line above a panel."""


def dose_figure(axis: str, members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Figure:
    """Above accuracy, below the recovered share of the gap; a column for few new nodes and one for many.

    Args:
        axis: the swept setting, `simulate.group_agreement`.
        members: one experiment, a cohort each.
        scored: cohort -> its scores.
    """
    doses = read_doses(axis, members, scored)
    variants = members[0].variants
    columns = by_cap(variants)
    marks = _marks(columns)
    figure = new_figure(WIDE, 6.1 + 0.17 * (-(-(len(marks) + 4) // KEYS)))
    panels = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False, height_ratios=(1.25, 1))
    for place, shown in enumerate(columns):
        upper, lower = panels[:, place]
        _scores(upper, doses, variants, shown, marks)
        _shares(lower, doses, shown, marks)
        upper.set_title(textwrap.fill(limit_words(shown), TITLE))
        lower.set_xlabel(MEANING.get(axis, axis_title(axis)))
        lower.set_xticks([dose.value for dose in doses], [f"{dose.value:g}" for dose in doses])
    panels[0, 0].set_ylabel("accuracy (mean over runs)")
    panels[1, 0].set_ylabel("share of the gap recovered")
    panels[1, 0].set_ylim(_frame(doses))
    panels[1, 0].yaxis.set_major_locator(MultipleLocator(0.5))
    panels[1, 0].yaxis.set_major_formatter(PercentFormatter(1, symbol="\u00a0%"))
    figure.align_ylabels(panels[:, 0])
    headed(figure, dose_finding(axis_title(axis), doses, variants), width=108)
    key_below(figure, _key(variants, marks), columns=KEYS)
    return figure


def _marks(columns: Sequence[Sequence[ShownVariant]]) -> dict[str, tuple[str, str]]:
    """Name of the new nodes -> colour and marker, the same in every column."""
    words = dict.fromkeys(node_words(variant, shown) for shown in columns for variant in shown)
    return {word: MARKS[number % len(MARKS)] for number, word in enumerate(words)}


def _scores(
    axes: Axes,
    doses: Sequence[Dose],
    variants: Sequence[ShownVariant],
    shown: Sequence[ShownVariant],
    marks: Mapping[str, tuple[str, str]],
) -> None:
    values = [dose.value for dose in doses]
    for number, variant in enumerate(_levels(variants)):
        means = [dose.scores[variant.name].mean for dose in doses]
        axes.plot(values, means, color=FAINT, linestyle=LEVELS[number % len(LEVELS)], linewidth=1.1)
    for method, style in ((UPPER, "-"), (LOWER, "--")):
        name = of_method(variants, method).name
        low, high = ([getattr(dose.scores[name], end) for dose in doses] for end in ("low", "high"))
        axes.fill_between(values, low, high, color=INK, alpha=0.07, linewidth=0)
        axes.plot(values, [dose.scores[name].mean for dose in doses], color=INK, linestyle=style, linewidth=1.6)
    for number, variant in enumerate(shown):
        colour, marker = marks[node_words(variant, shown)]
        found = [dose.scores[variant.name] for dose in doses]
        reach = np.nan_to_num(np.array([[one.mean - one.low, one.high - one.mean] for one in found])).T
        axes.errorbar(
            _beside(values, number, len(shown)), [one.mean for one in found], yerr=reach, color=colour, marker=marker,
            markersize=5, linewidth=1.2, elinewidth=1,
        )  # fmt: skip
    axes.grid(axis="y")


def _shares(
    axes: Axes, doses: Sequence[Dose], shown: Sequence[ShownVariant], marks: Mapping[str, tuple[str, str]]
) -> None:
    certain = [dose for dose in doses if dose.certain]
    for level, style in ((1.0, "-"), (0.0, "--")):
        axes.axhline(level, color=INK, linestyle=style, linewidth=1.2)
    for number, variant in enumerate(shown):
        colour, marker = marks[node_words(variant, shown)]
        shares = [dose.shares[variant.name] for dose in certain]
        places = np.array(_beside([dose.value for dose in doses], number, len(shown)))
        x = places[[dose.certain for dose in doses]]
        reach = np.array([[one.share - one.low, one.high - one.share] for one in shares]).reshape(-1, 2).T
        axes.errorbar(
            x, [one.share for one in shares], yerr=reach, color=colour, marker=marker, markersize=5, linewidth=1.2,
            elinewidth=1,
        )  # fmt: skip
    for dose in doses:
        if not dose.certain:
            axes.text(dose.value, 0.5, NO_GAP, rotation=90, ha="center", va="center", color=FAINT, fontsize=7.5)
    axes.grid(axis="y")


def _frame(doses: Sequence[Dose]) -> tuple[float, float]:
    """Lower and upper end of the shares' axis: all intervals, as far as `SHARES`."""
    shares = [share for dose in doses if dose.certain for share in dose.shares.values()]
    low, high = min([0.0, *(share.low for share in shares)]), max([1.0, *(share.high for share in shares)])
    return max(low - 0.08, SHARES[0]), min(high + 0.08, SHARES[1])


def _beside(values: Sequence[float], number: int, count: int) -> list[float]:
    """Points moved sideways by a hundredth of the axis, so that intervals do not hide each other."""
    step = 0.014 * (values[-1] - values[0])
    return [value + step * (number - (count - 1) / 2) for value in values]


def _levels(variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants that neither complete a graph nor bound the gap."""
    held = {variant.name for variant in completing(variants)}
    return [variant for variant in variants if variant.name not in held and variant.method not in (LOWER, UPPER)]


def _key(variants: Sequence[ShownVariant], marks: Mapping[str, tuple[str, str]]) -> list[Line2D]:
    pooled, cut = (of_method(variants, method).title for method in (UPPER, LOWER))
    lines = [
        Line2D([], [], color=INK, linewidth=1.6, label=f"{pooled}: pooled data, nobody missing"),
        Line2D([], [], color=INK, linewidth=1.6, linestyle="--", label=f"{cut}: the cut graph as it is"),
    ]
    lines += [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=word)
        for word, (colour, marker) in marks.items()
    ]
    return lines + [
        Line2D([], [], color=FAINT, linestyle=LEVELS[number % len(LEVELS)], label=variant.title)
        for number, variant in enumerate(_levels(variants))
    ]
